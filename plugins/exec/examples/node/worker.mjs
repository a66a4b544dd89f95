// Counts words, after a pause of `ms` milliseconds. A worker for Drover's exec, with nothing but Node.
//
//     command: [bin/plugins/exec, --name, words, --, node, plugins/exec/examples/node/worker.mjs]
//
// Node reads while it waits, so a cancelled task ends in order and the process goes on.

import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

// Messages go to standard output; what is printed for people goes to standard error.
const say = (type, fields) => process.stdout.write(JSON.stringify({ type, ...fields }) + '\n');
console.log = console.info = console.error;

async function work(run, payload, signal) {
  const { text, ms = 0 } = payload;
  if (typeof text !== 'string') {
    return say('error', { run, kind: 'invalid_payload', message: 'text is missing', permanent: true });
  }
  const words = text.split(/\s+/).filter(Boolean).length;
  say('progress', { run, done: words, total: words, note: 'counted' });
  await pause(ms, undefined, { signal });
  say('result', { run, result: { words, characters: [...text].length } });
}

let current = { run: 0, abort: new AbortController() };

createInterface({ input: process.stdin }).on('line', (line) => { // Node ends when its input and its work have ended
  const message = JSON.parse(line);
  if (message.type === 'cancel' && message.run === current.run) {
    current.abort.abort(new Error(message.reason));
  }
  if (message.type === 'task') {
    const { run, payload } = message;
    current = { run, abort: new AbortController() };
    // A failure of this task, which is tried again; the process goes on.
    work(run, payload, current.abort.signal).catch((e) => say('error', { run, message: `${e.name}: ${e.message}` }));
  }
});

say('ready', { v: 1 });
