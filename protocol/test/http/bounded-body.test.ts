import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { atMost, TooLong } from '../../src/http/bounded-body.ts';

const same = (error: unknown): Error => error as Error;

describe('a body forwarded up to a byte limit', () => {
  it('is forwarded at once, at no extra cost for single bytes', async () => {
    const body = new Readable({ read() {} });
    for (let at = 0; at < 50_000; at += 1) body.push(Buffer.from([at & 255]));
    body.push(null);
    const passed: Buffer[] = [];
    const bounded = atMost(body, 50_000, same).on('data', (chunk: Buffer) => passed.push(chunk));
    await once(bounded, 'end');
    assert.ok(passed.length < 10, `${passed.length} pieces`);
    assert.ok(Buffer.concat(passed).equals(Buffer.from(Array.from({ length: 50_000 }, (_, at) => at & 255))));
  });

  it('is slowed down by its reader', async () => {
    let asked = 0;
    const body = new Readable({
      read() {
        asked += 1;
        this.push(Buffer.alloc(16_384));
      },
    });
    const bounded = atMost(body, 2 ** 40, same);
    bounded.once('readable', () => undefined);
    await once(bounded, 'readable');
    const before = asked;
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(asked <= before + 16, `${asked} pieces for nobody`);
    bounded.destroy();
    if (!body.closed) await once(body, 'close');
  });

  it('ends with its source, and fails with the mapped error', async () => {
    assert.equal(Buffer.concat((await atMost(Readable.from([]), 1, same).toArray()) as Buffer[]).length, 0);
    const called = new Error('as it is called');
    for (const body of [
      new Readable({ read: () => void body.destroy(new Error('broken')) }),
      new Readable({ read: () => void body.destroy() }),
    ])
      await assert.rejects(atMost(body, 10, () => called).toArray(), called);
  });

  it('reports its failure to a later reader, and throws nothing before', async () => {
    const bounded = atMost(new Readable({ read() {} }).destroy(new Error('broken')), 10, same);
    await new Promise<void>((resolve) => bounded.once('close', resolve));
    await assert.rejects(bounded.toArray(), /broken/);
  });

  it('fails at the first byte over the limit, and is read no further', async () => {
    const taken = Readable.from([Buffer.from('12345'), Buffer.from('67')], { objectMode: false });
    assert.equal(Buffer.concat((await atMost(taken, 7, same).toArray()) as Buffer[]).toString(), '1234567');
    const body = new Readable({ read() {} });
    body.push('12345678');
    await assert.rejects(atMost(body, 7, same).toArray(), TooLong);
    assert.equal(body.destroyed, true);
  });
});
