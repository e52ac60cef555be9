// Reusable read buffers of sockets: a released buffer saves an allocation and stays in the CPU
// cache.
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { ByteStream } from '@berth/protocol/splice.ts';

const BUFFER_BYTES = 65_536;
/** Smaller chunks are copied: a few waiting bytes must not hold a whole buffer. */
const COPIED_BYTES = 16_384;
/** Free buffers kept: 2 MiB. */
const KEPT_BUFFERS = 32;

const kept: Buffer[] = [];
const memories = new WeakSet<ArrayBufferLike>();

/**
 * A TCP connection whose chunks may be recycled after use; others are left to the garbage
 * collector.
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
