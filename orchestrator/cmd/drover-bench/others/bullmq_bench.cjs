// Drains no-op tasks with BullMQ: a worker of concurrency 64 whose jobs run in processes of their own (sandboxed). Arguments: port of
// Redis, tasks. Prints the seconds.
const { Queue, Worker } = require('bullmq');
const fs = require('fs');
const path = require('path');

(async () => {
  const [port, n] = process.argv.slice(2).map(Number);
  const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
  const queue = new Queue('noop', { connection });
  const jobs = Array.from({ length: n }, () => ({ name: 'noop', data: { data: 'x'.repeat(89) }, opts: { removeOnComplete: true } }));
  for (let i = 0; i < n; i += 1000) await queue.addBulk(jobs.slice(i, i + 1000));
  const processor = path.join(__dirname, 'bullmq_noop.cjs');
  fs.writeFileSync(processor, 'module.exports = async () => {};\n');
  let done = 0;
  const began = Date.now();
  const worker = new Worker('noop', processor, { connection, concurrency: 4 });
  worker.on('error', (e) => { console.error(e.message); process.exit(1); });
  worker.on('completed', () => {
    if (++done === n) {
      console.log((Date.now() - began) / 1000);
      process.exit(0);
    }
  });
})();
