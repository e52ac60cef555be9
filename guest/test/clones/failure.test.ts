// Failure codes for git's output, including versions and hosts that the other tests lack.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CloneFailureCode } from '@berth/protocol/calls/clones.ts';
import { CLONE_MESSAGE_LENGTH } from '@berth/protocol/guest-limits.ts';
import { readFailure } from '../../src/clones/failure.ts';

const URL = 'https://git.example.test/acme/web.git';

const TABLE: readonly (readonly [CloneFailureCode, string])[] = [
  ['repository_not_found', `remote: Repository not found.\nfatal: repository '${URL}/' not found`],
  ['access_denied', `fatal: could not read Username for '${URL}': terminal prompts disabled`],
  ['access_denied', `remote: Invalid username or token.\nfatal: Authentication failed for '${URL}/'`],
  ['access_denied', `fatal: unable to access '${URL}/': The requested URL returned error: 403`],
  [
    'branch_not_found',
    'warning: Could not find remote branch x to clone.\nfatal: Remote branch x not found in upstream origin',
  ],
  ['network', `fatal: unable to access '${URL}/': Could not resolve host: git.example.test`],
  [
    'network',
    `fatal: unable to access '${URL}/': ` +
      `Failed to connect to git.example.test port 443 after 130131 ms: Couldn't connect to server`,
  ],
  ['network', `fatal: unable to access '${URL}/': SSL certificate problem: self-signed certificate`],
  ['network', `fatal: unable to access '${URL}/': The requested URL returned error: 503`],
  [
    'network',
    'error: RPC failed; curl 56 Recv failure: Connection reset by peer\n' +
      'fatal: early EOF\nfatal: fetch-pack: invalid index-pack output',
  ],
  ['network', 'fatal: the remote end hung up unexpectedly'],
  ['disk_full', 'fatal: write error: No space left on device\nfatal: fetch-pack: invalid index-pack output'],
  [
    'disk_full',
    'error: unable to write file big\n' +
      "fatal: cannot create directory at 'x': No space left on device\n" +
      'warning: Clone succeeded, but checkout failed.',
  ],
  ['failed', 'error: index-pack died of signal 9\nfatal: fetch-pack: invalid index-pack output'],
  ['failed', ''],
];

for (const [code, words] of TABLE) {
  test(`git's message ${JSON.stringify(words.slice(0, 60))} means ${code}`, () => {
    assert.equal(readFailure(`Cloning into 'work'...\n${words}\n`).code, code);
  });
}

test('only the last lines are reported, without lines from the host and progress of git', () => {
  const said = `Cloning into 'work'...\nremote: No space left on device\none\ntwo\nthree\n\nfour\nremote: more\n`;
  assert.deepEqual(readFailure(said), { code: 'failed', words: 'two; three; four' });
});

test('lines that do not fit into a message are left out, never cut', () => {
  const long = 'x'.repeat(CLONE_MESSAGE_LENGTH - 'two; '.length);
  assert.equal(readFailure(`one\ntwo\n${long}\n`).words, `two; ${long}`);
  assert.equal(readFailure(`one\ntwo\n${long}y\n`).words, `${long}y`);
  assert.deepEqual(readFailure(`one\nfatal: ${long}: Connection refused\n`), { code: 'network', words: '' });
});
