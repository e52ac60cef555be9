// The app behind the previews of these tests: a program for the guest's Node with a path for each
// test, and its installation and start in a sandbox.
import assert from 'node:assert/strict';
import { writtenFile } from '@berth/contract/files/files.ts';
import { call, exec, type Caller } from '../world/client.ts';
import { packPackages } from './guest-packages.ts';

export const APP_PORT = 3_000;
/** Second port, for links that are tried at the wrong port. */
export const OTHER_PORT = 3_001;
/** Requests for `/together` that wait for one another. */
export const TOGETHER = 50;

/**
 * `/` returns its host; `/file` the file `big`, or a range of it; PUT `/file` writes `arrived`;
 * `/together` responds when all requests are there; `/events` sends the next event only after
 * `/seen?event=` of the last; WebSockets echo.
 */
const PROGRAM = `
import { createReadStream, createWriteStream, statSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { WebSocketServer } from 'ws';

const together = [];
let stream;
let sent = 0;
const next = () => {
  sent += 1;
  stream.write('id: ' + sent + '\\ndata: event ' + sent + '\\n\\n');
};

function sendFile(request, response) {
  const { size } = statSync('big');
  const range = /^bytes=(\\d*)-(\\d*)$/.exec(request.headers.range ?? '');
  if (range === null) {
    response.writeHead(200, { 'content-length': size, 'accept-ranges': 'bytes' });
    return pipeline(createReadStream('big'), response);
  }
  const start = range[1] === '' ? size - Number(range[2]) : Number(range[1]);
  const end = range[1] === '' || range[2] === '' ? size - 1 : Number(range[2]);
  const sent = 'bytes ' + start + '-' + end + '/' + size;
  response.writeHead(206, { 'content-length': end - start + 1, 'content-range': sent });
  return pipeline(createReadStream('big', { start, end }), response);
}

async function takeFile(request, response) {
  const hash = createHash('sha256');
  let bytes = 0;
  await pipeline(request, async function* (source) {
    for await (const chunk of source) {
      hash.update(chunk);
      bytes += chunk.length;
      yield chunk;
    }
  }, createWriteStream('arrived'));
  response.end(JSON.stringify({ bytes, sha256: hash.digest('hex') }));
}

async function answer(request, response) {
  const url = new URL(request.url, 'http://app');
  if (url.pathname === '/file') return await (request.method === 'PUT' ? takeFile : sendFile)(request, response);
  if (url.pathname === '/together') {
    together.push([url.searchParams.get('number'), response]);
    if (together.length === ${TOGETHER})
      for (const [number, waiting] of together.splice(0)) waiting.end('number ' + number);
    return;
  }
  if (url.pathname === '/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    stream = response;
    sent = 0;
    next();
    return;
  }
  if (url.pathname === '/seen') {
    const isLast = Number(url.searchParams.get('event')) === sent;
    if (isLast) next();
    response.writeHead(isLast ? 204 : 409).end();
    return;
  }
  response.end('the app at ' + request.headers['x-berth-forwarded-host']);
}

for (const port of [${APP_PORT}, ${OTHER_PORT}]) {
  const server = createServer((request, response) => answer(request, response).catch((error) => {
    console.error(request.method, request.url, error);
    response.destroy();
  }));
  new WebSocketServer({ server }).on('connection', (socket) => {
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  server.listen(port, '127.0.0.1', () => console.log('listening on', port));
}
`;

/** Resolves when the app listens on both ports. */
export async function startApp(caller: Caller, sandboxId: string): Promise<void> {
  await writeGuestFile(caller, sandboxId, 'app/app.mjs', Buffer.from(PROGRAM));
  await writeGuestFile(caller, sandboxId, 'app/packages.tar.gz', await packPackages(['ws']));
  const { exitCode, stderr } = await exec(
    caller,
    sandboxId,
    `cd app && tar xzf packages.tar.gz && : > app.log && { setsid node app.mjs </dev/null >app.log 2>&1 & } &&
      until [ "$(grep -c listening app.log)" = 2 ]; do kill -0 $! && sleep 0.1 || { cat app.log >&2; exit 1; }; done`,
    180,
  );
  assert.equal(exitCode, 0, stderr);
}

/** Writes a file through the API, as an agent does. */
export async function writeGuestFile(caller: Caller, sandboxId: string, path: string, content: Buffer): Promise<void> {
  const body = { path, content: content.toString('base64'), encoding: 'base64' };
  const answer = await call(caller, 'PUT', `/v1/sandboxes/${sandboxId}/file`, body);
  assert.equal(answer.status, 200, JSON.stringify(answer.body).slice(0, 500));
  assert.equal(writtenFile.parse(answer.body).size, content.length);
}

/** Output of a command that must succeed. */
export async function runInGuest(caller: Caller, sandboxId: string, command: string): Promise<string> {
  const { exitCode, stdout, stderr } = await exec(caller, sandboxId, command, 300);
  assert.equal(exitCode, 0, stderr);
  return stdout.trim();
}
