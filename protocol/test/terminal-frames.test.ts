import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bytesFrames,
  controlFrame,
  FrameFault,
  FrameReader,
  TERMINAL_FRAME,
  TERMINAL_FRAME_BYTES,
} from '../src/terminal-frames.ts';
import fc from 'fast-check';

interface Read {
  bytes: Buffer;
  controls: unknown[];
  longest: number;
}

function readAll(chunks: readonly Buffer[]): Read {
  const read: Read = { bytes: Buffer.alloc(0), controls: [], longest: 0 };
  const reader = new FrameReader((kind, content) => {
    read.longest = Math.max(read.longest, content.length);
    if (kind === TERMINAL_FRAME.bytes) read.bytes = Buffer.concat([read.bytes, content]);
    else read.controls.push(JSON.parse(content.toString('utf8')));
  });
  chunks.forEach((chunk) => reader.push(chunk));
  return read;
}

test('written frames are read back, in any pieces', () => {
  const message = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.record({ exit: fc.nat(255) }),
    fc.record({ signal: fc.string() }),
  );
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 12 }),
      fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }),
      (messages, cuts) => {
        const written = Buffer.concat(
          messages.map((each) => (each instanceof Uint8Array ? bytesFrames(each) : controlFrame(each))),
        );
        const chunks: Buffer[] = [];
        for (let at = 0, cut = 0; at < written.length; cut += 1) {
          const length = cuts[cut % cuts.length] ?? 1;
          chunks.push(written.subarray(at, at + length));
          at += length;
        }
        const { bytes, controls } = readAll(chunks);
        assert.deepEqual(bytes, Buffer.concat(messages.filter((each) => each instanceof Uint8Array)));
        assert.deepEqual(
          controls,
          messages
            .filter((each) => !(each instanceof Uint8Array))
            .map((each) => JSON.parse(JSON.stringify(each)) as unknown),
        );
      },
    ),
  );
});

test('long content becomes several frames within the limit, empty content one', () => {
  const content = Buffer.alloc(3 * TERMINAL_FRAME_BYTES + 1, 'x');
  const { bytes, longest } = readAll([Buffer.from(bytesFrames(content))]);
  assert.ok(bytes.equals(content));
  assert.equal(longest, TERMINAL_FRAME_BYTES);
  assert.equal(bytesFrames(new Uint8Array(0)).length, 5);
});

test('any input gives frames or a fault, throws nothing else and buffers one frame at most', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), (chunks) => {
      const reader = new FrameReader(() => undefined);
      try {
        chunks.forEach((chunk) => reader.push(Buffer.from(chunk)));
      } catch (error) {
        assert.ok(error instanceof FrameFault);
      }
    }),
    { numRuns: 1_000 },
  );
});
