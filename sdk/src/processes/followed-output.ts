// Output of a process over a WebSocket (contract/src/commands/follow.ts).
import type { ProcessOutputChunk } from '../generated/raw/index.ts';
import { COMMAND_OUTPUT, WEBSOCKET_CLOSE } from '../generated/contract-tables.ts';
import { Source } from '../streams/byte-streams.ts';
import { closedError, type Connection } from '../streams/connection.ts';
import { BerthError } from '../transport/errors.ts';
import { asText, partialCharacter } from '../transport/utf8.ts';
import { ProcessOutput } from './output.ts';

type StreamName = ProcessOutputChunk['stream'];

/** A stream so far. */
interface Followed {
  /** Cursor of the byte after those that were passed on. */
  offset: number;
  lostBytes: number;
  /** The beginning of a character, not passed on. */
  held: Uint8Array;
}

/** Ends when the output is complete; fails if the connection ended before. */
export function followedOutput(connection: Connection): ReadableStream<ProcessOutput> {
  const source = new Source<ProcessOutput>(connection, ({ bytes }) => bytes.byteLength);
  const streams = new Map<StreamName, Followed>();
  let isComplete = false;
  const pass = (stream: StreamName, followed: Followed, bytes: Uint8Array): void => {
    if (bytes.byteLength === 0) return;
    const { offset, lostBytes } = followed;
    followed.offset += bytes.byteLength;
    followed.lostBytes = 0;
    const cursor = [...streams.values()].map((one) => one.offset).join('.');
    source.push(new ProcessOutput({ stream, offset, lostBytes, cursor }, bytes));
  };
  const flush = (): void => {
    for (const [stream, followed] of streams) {
      const { held } = followed;
      followed.held = new Uint8Array();
      pass(stream, followed, held);
    }
  };
  const refuse = (): void => {
    connection.fail(new BerthError(`${connection.what} sent frames of no process`, { code: 'invalid_answer' }));
  };
  connection.attach({
    bytes: (frame) => {
      const hasNumber = !streams.has('output');
      const name = hasNumber ? NAMES.get(frame[0] ?? 0) : 'output';
      const followed = name === undefined ? undefined : streams.get(name);
      if (name === undefined || followed === undefined) return refuse();
      const bytes = joined(followed.held, hasNumber ? frame.subarray(1) : frame);
      const partial = partialCharacter(bytes);
      const whole = bytes.subarray(0, bytes.byteLength - partial);
      const passed = partial > 0 && whole.byteLength > 0 && asText(whole) !== null ? whole : bytes;
      followed.held = bytes.subarray(passed.byteLength);
      pass(name, followed, passed);
    },
    order: ({ cursor, lost, complete }) => {
      if (typeof cursor === 'string') {
        const offsets = cursor.split('.').map(Number);
        const names: readonly StreamName[] = offsets.length === 1 ? ['output'] : ['stdout', 'stderr'];
        for (const [index, name] of names.entries())
          streams.set(name, { offset: offsets[index] ?? 0, lostBytes: 0, held: new Uint8Array() });
      } else if (typeof lost === 'object' && lost !== null) {
        const { stream, bytes } = lost as { stream: StreamName; bytes: number };
        const followed = streams.get(stream);
        if (followed === undefined) return refuse();
        flush();
        followed.offset += bytes;
        followed.lostBytes += bytes;
      } else if (complete === true) {
        isComplete = true;
        flush();
      }
    },
    ended: (failure) =>
      source.end(isComplete ? null : (failure ?? closedError(connection.what, WEBSOCKET_CLOSE.ended, ''))),
  });
  return source.readable;
}

const NAMES: ReadonlyMap<number, StreamName> = new Map(
  Object.entries(COMMAND_OUTPUT).map(([name, number]) => [number, name]),
);

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  if (one.byteLength === 0) return other;
  const bytes = new Uint8Array(one.byteLength + other.byteLength);
  bytes.set(one);
  bytes.set(other, one.byteLength);
  return bytes;
}
