// The secret of a clone: git gets it, once, for the one host and path. During and after the clone
// no argument, environment or file of the guest contains it.
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, before, test, type TestContext } from 'node:test';
import { guestCloneResult } from '@berth/protocol/calls/clones.ts';
import { CLONE_MESSAGE_LENGTH, CLONE_OUTPUT_BYTES } from '@berth/protocol/guest-limits.ts';
import { KEEPER_ARGUMENT } from '../../src/clones/keeper.ts';
import { makeSealedClone, clone, filesHolding, gitIn, processesWith } from './calls.ts';
import { startDaemon, until, type TestDaemon } from '../daemon.ts';
import { basic, GitServer } from './git-server.ts';
import { memoryHolding } from './process-memory.ts';

/** Distinctive texts, so that a search finds no accidental match. */
const CREDENTIALS = { username: 'watched-for-user', token: 'WatchedForEverywhere-%40:0123 "456"' };
const FORMS = [
  CREDENTIALS.token,
  CREDENTIALS.username,
  basic(CREDENTIALS).slice(6),
  encodeURIComponent(CREDENTIALS.token),
];

let git: GitServer;
before(async () => {
  git = await GitServer.start();
  git.add('acme/closed');
  git.credentials = CREDENTIALS;
});
after(() => git.stop());
afterEach(() => {
  git.release();
  git.script = null;
  git.requests.length = 0;
});

const closed = (): string => `${git.url}/acme/closed.git`;
const socketOf = (daemon: TestDaemon): string => join(daemon.folder, 'clone-run', 'credentials');

/** A clone whose git has the secret, held back by the host. */
async function heldClone(t: TestContext): Promise<{ daemon: TestDaemon; done: ReturnType<typeof clone> }> {
  const daemon = await startDaemon(t);
  git.hold();
  const done = clone(daemon, closed(), { credentials: CREDENTIALS });
  done.catch(() => undefined);
  await until('the host holds it back', () => git.waiting === 1);
  return { daemon, done };
}

/** Pids of the daemon's keeper processes. */
async function keeperPids(daemon: TestDaemon): Promise<number[]> {
  const children = await readFile(`/proc/${daemon.pid}/task/${daemon.pid}/children`, 'utf8');
  const kept = children
    .split(' ')
    .filter((pid) => pid !== '')
    .map(async (pid) =>
      (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).includes(KEEPER_ARGUMENT) ? [Number(pid)] : [],
    );
  return (await Promise.all(kept)).flat();
}

/** The socket's response to a credential helper. */
async function ask(socket: string, question: string): Promise<string> {
  return await new Promise((resolve, reject) => {
    const asking = connect(socket, () => asking.end(question));
    let told = '';
    asking.setEncoding('utf8').on('data', (chunk: string) => (told += chunk));
    asking.once('end', () => resolve(told));
    asking.once('error', reject);
  });
}

test('a repository that requires credentials gets those of the call once it asks', async (t) => {
  const daemon = await startDaemon(t);
  assert.deepEqual(await clone(daemon, closed(), { credentials: CREDENTIALS }), { outcome: 'cloned' });
  assert.deepEqual(
    [...new Set(git.requests.map(({ authorization }) => authorization))],
    [undefined, basic(CREDENTIALS)],
  );
  assert.equal(git.requests[0]?.authorization, undefined);
  assert.equal(gitIn(daemon, 'config', 'remote.origin.url'), closed());
});

test('during and after a clone no argument, environment or file has the secret and nothing returns it', async (t) => {
  const { daemon, done } = await heldClone(t);
  const running = await processesWith('git');
  assert.ok(running.length >= 2, 'git was not found at work');
  for (const { text } of running)
    for (const form of FORMS) assert.ok(!text.includes(form), 'a process shows the secret');
  assert.deepEqual(filesHolding(daemon.folder, FORMS), []);
  const { host } = new URL(git.url);
  assert.equal(
    await ask(socketOf(daemon), `protocol=http\nhost=${host}\npath=acme/closed.git\n\n`),
    '',
    'it was given out a second time',
  );

  git.release();
  assert.deepEqual(await done, { outcome: 'cloned' });
  assert.deepEqual(filesHolding(daemon.folder, FORMS), []);
  assert.deepEqual(await processesWith('git'), []);
  assert.equal(existsSync(join(daemon.folder, 'clone-run')), false);
  // The user's own git requests credentials again, and gets none.
  const fetched = await daemon.exec('GIT_TERMINAL_PROMPT=0 git fetch');
  assert.notEqual(fetched.exitCode, 0);
  assert.deepEqual(readdirSync(daemon.folder).sort(), ['clone.json', 'code', 'port', 'run']);
});

test('daemon memory never holds the secret, and its keeper exits after the clone', async (t) => {
  const { daemon, done } = await heldClone(t);
  const keepers = await keeperPids(daemon);
  assert.equal(keepers.length, 1);
  assert.deepEqual(memoryHolding(daemon.pid, FORMS), []);
  git.release();
  assert.deepEqual(await done, { outcome: 'cloned' });
  assert.deepEqual(memoryHolding(daemon.pid, FORMS), []);
  assert.deepEqual(await keeperPids(daemon), []);
  // Proves that the search finds a match.
  await daemon.exec(`true ${CREDENTIALS.username}`);
  assert.deepEqual(memoryHolding(daemon.pid, FORMS), [CREDENTIALS.username]);
});

test('a keeper without a clone exits by itself, and with its daemon', async (t) => {
  const daemon = await startDaemon(t, { BERTH_GUEST_CLONE_ORPHAN_MS: '100' });
  await makeSealedClone(daemon, closed(), { credentials: CREDENTIALS });
  await until('the keeper has ended', async () => (await keeperPids(daemon)).length === 0);
  const other = await startDaemon(t);
  await makeSealedClone(other, closed(), { credentials: CREDENTIALS });
  const [keeper] = await keeperPids(other);
  assert.ok(keeper !== undefined);
  await other.stop('SIGKILL');
  await until('the keeper has ended', () => !existsSync(`/proc/${keeper}`));
});

test('credentials for a dropped key or in an invalid box make no clone; the next call does', async (t) => {
  const daemon = await startDaemon(t);
  const sealed = await makeSealedClone(daemon, closed(), { credentials: CREDENTIALS });
  await daemon.call('POST', '/clone/end');
  await assert.rejects(daemon.call('POST', '/clone', sealed));
  const fresh = await makeSealedClone(daemon, closed(), { credentials: CREDENTIALS });
  const box = Buffer.alloc(100).toString('base64');
  const answer = await daemon.call('POST', '/clone', { ...fresh, credentials: { ...fresh.credentials, box } });
  assert.equal(guestCloneResult.parse(JSON.parse(answer.text)).outcome, 'failed');
  assert.deepEqual(git.requests, []);
  assert.deepEqual(await clone(daemon, closed(), { credentials: CREDENTIALS }), { outcome: 'cloned' });
});

test('a credential query for another host, path or protocol gets nothing and does not use up the secret', async (t) => {
  const daemon = await startDaemon(t);
  const { host } = new URL(git.url);
  const meant = `protocol=http\nhost=${host}\npath=acme/closed.git\n`;
  // Before git requests credentials: the host holds its first response back.
  const first = Promise.withResolvers<void>();
  git.script = {
    fits: () => true,
    answer: (_request, response) => {
      git.script = null;
      void first.promise.then(() => response.writeHead(401, { 'www-authenticate': 'Basic realm="tests"' }).end());
    },
  };
  const done = clone(daemon, closed(), { credentials: CREDENTIALS });
  await until('git is at the host', () => git.requests.length === 1);
  for (const question of [
    '',
    'protocol=http\n',
    meant.replace(host, 'elsewhere.example.test'),
    meant.replace('closed', 'open'),
    meant.replace('=http\n', '=https\n'),
    `${meant}host=elsewhere.example.test\n`,
    `${meant}path=acme/closed.git/more\n`,
    'x'.repeat(10_000),
  ])
    assert.equal(await ask(socketOf(daemon), question), '', question);

  await assert.rejects(ask(socketOf(daemon), 'x'.repeat(1_000_000)), /ECONNRESET|EPIPE/);
  first.resolve();
  assert.deepEqual(await done, { outcome: 'cloned' });
});

test('a redirect to another path, or another host, is followed without the secret', async (t) => {
  const other = await GitServer.start();
  t.after(() => other.stop());
  other.add('acme/closed');
  other.credentials = CREDENTIALS;
  for (const [to, seen] of [
    [`${git.url}/acme/moved.git`, git],
    [`${other.url}/acme/closed.git`, other],
  ] as const) {
    const daemon = await startDaemon(t);
    git.script = {
      fits: (url) => url.startsWith('/acme/closed.git'),
      answer: (request, response) => {
        response.writeHead(301, { location: to + (request.url ?? '').slice('/acme/closed.git'.length) }).end();
      },
    };
    const result = await clone(daemon, closed(), { credentials: CREDENTIALS });
    assert.ok(result.outcome === 'failed');
    assert.equal(result.code, 'access_denied', result.message);
    assert.ok(seen.requests.some(({ url }) => url.startsWith(new URL(to).pathname)));
    assert.deepEqual(
      seen.requests.filter(({ authorization }) => authorization !== undefined),
      [],
    );
  }
});

for (const [title, credentials] of [
  ['wrong ones', { ...CREDENTIALS, token: 'wrong' }],
  ['none', null],
] as const) {
  test(`with ${title} a repository that requires credentials is access_denied, without a prompt`, async (t) => {
    const daemon = await startDaemon(t);
    const result = await clone(daemon, closed(), { credentials });
    assert.ok(result.outcome === 'failed');
    assert.equal(result.code, 'access_denied', result.message);
    assert.deepEqual(readdirSync(daemon.codeFolder), []);
    assert.equal(existsSync(join(daemon.folder, 'clone-run')), false);
  });
}

for (const [title, kept, answer] of [
  [
    'start of the kept output',
    CLONE_OUTPUT_BYTES,
    (text: string, response: ServerResponse) => response.writeHead(500, { 'content-type': 'text/plain' }).end(text),
  ],
  [
    'end of the message',
    CLONE_MESSAGE_LENGTH,
    (text: string, response: ServerResponse) => {
      const packet = `ERR ${text}`;
      const length = (packet.length + 4).toString(16).padStart(4, '0');
      response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-advertisement' });
      response.end(`001e# service=git-upload-pack\n0000${length}${packet}`);
    },
  ],
] as const) {
  test(`a secret that the host repeats across the ${title} leaves no part in the message`, async (t) => {
    const daemon = await startDaemon(t);
    const { token } = CREDENTIALS;
    const padding = (words: string): string => 'x'.repeat(kept - words.length - token.length / 2);
    const after = `\nfatal: unable to access '${closed()}/': The requested URL returned error: 500\n`;
    // The rest of the token is a line of its own: a long line would not be told at all.
    const text =
      kept === CLONE_OUTPUT_BYTES
        ? `${token}\n${padding(`\nremote: ${after}`)}`
        : padding('fatal: remote error: ') + token;
    git.script = {
      fits: () => true,
      answer: (request, response) => {
        if (request.headers.authorization === undefined)
          response.writeHead(401, { 'www-authenticate': 'Basic realm="tests"' }).end();
        else answer(text, response);
      },
    };
    const result = await clone(daemon, closed(), { credentials: CREDENTIALS });
    assert.ok(result.outcome === 'failed');
    const parts = Array.from({ length: token.length - 7 }, (_, at) => token.slice(at, at + 8));
    assert.deepEqual(
      parts.filter((part) => result.message.replaceAll(token, '').includes(part)),
      [],
    );
  });
}

test('a credential helper of the user neither gets the secret nor replaces it', async (t) => {
  const daemon = await startDaemon(t);
  await daemon.exec('git config --global credential.helper store');
  await daemon.exec('git config --global credential.http://127.0.0.1.helper store');
  assert.deepEqual(await clone(daemon, closed(), { credentials: CREDENTIALS }), { outcome: 'cloned' });
  assert.equal(existsSync(join(daemon.codeFolder, '.git-credentials')), false);
  assert.deepEqual(filesHolding(daemon.folder, FORMS), []);
});

test('an invalid clone body is refused without quoting its secret', async (t) => {
  const daemon = await startDaemon(t);
  const body = JSON.stringify(await makeSealedClone(daemon, closed(), { credentials: CREDENTIALS }));
  for (const wrong of [
    body.slice(0, -1),
    `${body}x`,
    body.replace('"maxMib"', '"more"'),
    body.replace('"url":"http', '"url":"file'),
  ]) {
    const answer = await daemon.open('POST', '/clone', wrong).answer;
    assert.equal(answer.status, 400);
    for (const form of FORMS) assert.ok(!answer.text.includes(form), answer.text);
  }
});
