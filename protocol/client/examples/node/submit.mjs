// Submits a task and prints its result, without any package: node submit.mjs QUEUE JSON [SECONDS]
// DROVER_ADDRESS is unix:PATH or https://HOST:PORT; the latter takes DROVER_TOKEN_FILE, and DROVER_CA_FILE for a certificate of your own.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';

const { DROVER_ADDRESS: address = 'unix:var/drover.sock', DROVER_TOKEN_FILE, DROVER_CA_FILE } = process.env;

/** Calls a method of the TaskService and resolves to its answer. */
function drover(method, request, seconds = 30) {
  const path = `/drover.api.v1.TaskService/${method}`;
  const headers = { 'content-type': 'application/json' };
  const options = { method: 'POST', headers, timeout: (seconds + 5) * 1000 };
  return new Promise((resolve, reject) => {
    const answered = (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => { text += part; }).on('error', reject).on('end', () => {
        try {
          const answer = JSON.parse(text);
          if (response.statusCode === 200) resolve(answer);
          else reject(new Error(`${method}: ${answer.code}: ${answer.message}`));
        } catch (error) {
          reject(error);
        }
      });
    };
    let call;
    if (address.startsWith('unix:')) {
      call = http.request({ ...options, socketPath: address.slice('unix:'.length), path }, answered);
    } else {
      headers.authorization = `Bearer ${readFileSync(DROVER_TOKEN_FILE, 'utf8').trim()}`;
      call = https.request(address + path, { ...options, ca: DROVER_CA_FILE && readFileSync(DROVER_CA_FILE) }, answered);
    }
    call.on('error', reject).on('timeout', () => call.destroy(new Error('the manager is silent')));
    call.end(JSON.stringify(request));
  });
}

const [queue, payload, seconds = 5] = process.argv.slice(2);
try {
  const { id } = await drover('Submit', { queue, payload: Buffer.from(payload).toString('base64') });
  const { task, ended } = await drover('Wait', { id, timeoutMs: Math.round(seconds * 1000) }, Number(seconds));
  if (!ended) {
    console.error(`${id} is not done after ${seconds} s`);
    process.exitCode = 4;
  } else if (task.state !== 'STATE_COMPLETED') {
    console.error(`${id}: ${task.state}: ${task.fault?.message}`);
    process.exitCode = 1;
  } else {
    console.log(Buffer.from(task.result, 'base64').toString());
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
