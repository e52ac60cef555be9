// Keys of `berth attach` while their requests take long.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { untilTrue } from '../../../os/test/until.ts';
import { Keys } from '../../src/processes/keys.ts';

/** Keys for a process that takes each request when the test says so. */
function slowKeys(): { keys: WritableStreamDefaultWriter; sent: string[]; take: () => void; detached: () => boolean } {
  const sent: string[] = [];
  let taken = Promise.withResolvers<void>();
  let isDetached = false;
  const { writable } = new Keys({
    send: async (bytes) => {
      sent.push(Buffer.from(bytes).toString());
      await taken.promise;
      taken = Promise.withResolvers();
    },
    detach: () => (isDetached = true),
    fail: (error) => assert.fail(String(error)),
  });
  return { keys: writable.getWriter(), sent, take: () => taken.resolve(), detached: () => isDetached };
}

test('keys typed during a request go with the next one', async () => {
  const { keys, sent, take } = slowKeys();
  for (const typed of ['a', 'b', 'c\x10', '\x10d']) await keys.write(Buffer.from(typed));
  assert.deepEqual(sent, ['a']);
  take();
  await untilTrue('the rest is sent', () => sent.length === 2);
  assert.deepEqual(sent, ['a', 'bc\x10\x10d']);
});

test('Ctrl-P Ctrl-Q detaches after the keys before them are sent, and at once with a further key', async () => {
  const first = slowKeys();
  await first.keys.write(Buffer.from('a\x10\x11ignored'));
  assert.deepEqual([first.sent, first.detached()], [['a'], false]);
  first.take();
  await untilTrue('it is detached', first.detached);
  assert.deepEqual(first.sent, ['a']);
  const second = slowKeys();
  await second.keys.write(Buffer.from('a\x10\x11'));
  await second.keys.write(Buffer.from('x'));
  assert.deepEqual([second.sent, second.detached()], [['a'], true]);
});
