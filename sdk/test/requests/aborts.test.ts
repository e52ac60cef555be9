// Calls that their signal aborts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exampleSandbox } from '@berth/contract/route/examples.ts';
import { against, json } from '../scripted-server.ts';

test('an aborted call rejects with an AbortError, or the reason of its signal', async (t) => {
  const silent = (): void => undefined;
  const { berth } = await against(t, [json(200, { sandbox: exampleSandbox }), silent]);
  const sandbox = await berth.sandboxes.get('sbx_1');
  const { files } = sandbox;
  for (const [what, call] of [
    ['a read', (signal) => berth.me({ signal })],
    ['a write', (signal) => sandbox.exec('true', { signal })],
    ['a command with output', (signal) => sandbox.exec('true', { signal, onStdout: () => undefined })],
    ['a create', (signal) => berth.sandboxes.create({}, { signal })],
    ['getOrCreate', (signal) => berth.sandboxes.getOrCreate({ key: 'k' }, { signal })],
    ['a wait', (signal) => sandbox.waitUntil('ready', { signal })],
    ['an upload', (signal) => files.upload('a', 'text', { signal })],
    ['a resumable upload', (signal) => files.uploadResumable('a', new Blob(['a']), { key: 'k', signal })],
    ['a download', (signal) => files.download('a', { signal })],
    ['a watch', (signal) => files.watch('a', { signal }).next()],
    ['a stream', (signal) => sandbox.command('cat', { signal })],
    ['activity', (signal) => berth.activity.follow({}, { signal }).next()],
  ] as const satisfies readonly (readonly [string, (signal: AbortSignal) => PromiseLike<unknown>])[]) {
    for (const reason of [undefined, new Error('enough')]) {
      const aborting = new AbortController();
      const failure = Promise.resolve(call(aborting.signal)).catch((error: unknown) => error);
      aborting.abort(reason);
      const error = await failure;
      if (reason === undefined) assert.equal((error as Error).name, 'AbortError', what);
      else assert.equal(error, reason, what);
    }
  }
});
