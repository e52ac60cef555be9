// Memory that sockets are read into, used again: what one read has brought and another socket has
// taken needs no new memory, and stays in the processor's cache.
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { ByteStream } from '@berth/protocol/splice.ts';

/** What is read at once. */
const BUFFER_BYTES = 65_536;
/**
 * Less than this is copied out: a few bytes that wait to be taken must not hold all of a buffer.
 */
const COPIED_BYTES = 16_384;
/** Kept while nobody needs them: 2 MiB. */
const KEPT_BUFFERS = 32;

const kept: Buffer[] = [];
const memories = new WeakSet<ArrayBufferLike>();

/**
 * A TCP connection whose chunks may be given back once nobody needs what is in them, and are
 * otherwise left to the collector.
 */
export function connectRecycling(options: TcpNetConnectOpts): Socket & Pick<ByteStream, 'recycle'> {
  const socket: Socket = connect({ ...options, onread: { buffer: take, callback: onRead } });
  function onRead(bytes: number, buffer: Uint8Array): boolean {
    if (bytes >= COPIED_BYTES) return socket.push(buffer.subarray(0, bytes));
    const copy = Buffer.from(buffer.subarray(0, bytes));
    recycle(buffer);
    return socket.push(copy);
  }
  return Object.assign(socket, { recycle });
}

function take(): Buffer {
  const again = kept.pop();
  if (again !== undefined) return again;
  const made = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  memories.add(made.buffer);
  return made;
}

function recycle({ buffer }: Uint8Array): void {
  if (kept.length < KEPT_BUFFERS && memories.has(buffer)) kept.push(Buffer.from(buffer as ArrayBuffer));
}
