// Contents and options of writes, as programs without types pass them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UploadSource } from '../../src/index.ts';
import { exampleSandbox } from '@berth/contract/route/examples.ts';
import { against, failureOf, json } from '../scripted-server.ts';

const WRITTEN = json(200, { path: '/code/a', size: 0, sha256: '' });

test('a write without content is refused before a request', async (t) => {
  const { berth, seen } = await against(t, [json(200, { sandbox: exampleSandbox }), WRITTEN]);
  const { files } = await berth.sandboxes.get('sbx_1');
  for (const [content, found] of [
    [undefined, 'undefined'],
    [null, 'null'],
    [5, 'number'],
    [{ length: 0 }, 'object'],
    [['a'], 'object'],
  ] as const) {
    const data = content as unknown as string;
    for (const call of [files.write('a', data), files.upload('a', data), files.append('a', data, { offset: 0 })]) {
      const { code, message } = await failureOf(call);
      assert.equal(code, 'configuration');
      assert.equal(message, `cannot write a: the content must be a text or bytes, not ${found}`);
    }
    const source = content as unknown as UploadSource;
    for (const call of [files.uploadResumable('a', source), files.continueUpload('a', source)]) {
      const { code, message } = await failureOf(call);
      assert.equal(code, 'configuration');
      assert.equal(message, 'cannot upload a: the source must have a size and a slice, as a Blob has');
    }
  }
  const { message } = await failureOf(files.write('a', new Blob(['a']) as unknown as string));
  assert.match(message, /not object$/);
  assert.equal(seen.length, 1);
});

test('an append without offset is refused before a request', async (t) => {
  const { berth, seen } = await against(t, [json(200, { sandbox: exampleSandbox }), WRITTEN]);
  const { files } = await berth.sandboxes.get('sbx_1');
  const append = files.append.bind(files) as (...args: unknown[]) => Promise<unknown>;
  for (const options of [[], [{}], [{ offset: 0.5 }], [null]]) {
    const { code, message } = await failureOf(append('a', 'text', ...options));
    assert.equal(code, 'configuration');
    assert.match(message, /^cannot append to a: offset is .*\. Pass the file's size, which stat has$/);
  }
  assert.equal(seen.length, 1);
});

test('views of several kinds and buffers are written byte by byte', async (t) => {
  const { berth, seen } = await against(t, [json(200, { sandbox: exampleSandbox }), WRITTEN]);
  const { files } = await berth.sandboxes.get('sbx_1');
  const { buffer } = new Uint8Array([0, 1, 2, 3, 255, 5]);
  for (const [data, bytes] of [
    [buffer, [0, 1, 2, 3, 255, 5]],
    [new Uint8Array(buffer, 3, 2), [3, 255]],
    [new Uint16Array(buffer, 2, 1), [2, 3]],
    [new DataView(buffer, 4), [255, 5]],
    [Buffer.from('ü'), [195, 188]],
  ] as const) {
    await files.write('a', data as Uint8Array);
    const { content } = JSON.parse(seen.at(-1)?.body ?? '') as { content: string };
    assert.deepEqual([...Buffer.from(content, 'base64')], bytes);
  }
});

test('a link reads by default', async (t) => {
  const { berth, seen } = await against(t, [json(200, { sandbox: exampleSandbox }), json(201, { link: {} })]);
  const { files } = await berth.sandboxes.get('sbx_1');
  await files.link('a');
  await files.link('a', { action: 'write', maxBytes: 1 });
  assert.deepEqual(
    seen.slice(1).map(({ body }) => JSON.parse(body) as unknown),
    [
      { path: 'a', action: 'read' },
      { path: 'a', action: 'write', maxBytes: 1 },
    ],
  );
});
