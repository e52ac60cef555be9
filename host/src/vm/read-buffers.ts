// Memory that sockets are read into, used again: what one read has brought and another socket has taken needs no new memory, and stays in the processor's cache.
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { Recycling } from '@berth/protocol/splice.ts';

/** What is read at once. */
const BUFFER_BYTES = 65_536;
/** Kept while nobody needs them: 2 MiB. */
const KEPT_BUFFERS = 32;

const kept: Buffer[] = [];

/** A TCP connection whose chunks may be given back once nobody needs what is in them, and are otherwise left to the collector. */
export function connectRecycling(options: TcpNetConnectOpts): Socket & Recycling {
  const socket: Socket = connect({
    ...options,
    onread: {
      buffer: () => kept.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES),
      callback: (bytes, buffer) => socket.push(buffer.subarray(0, bytes)),
    },
  });
  return Object.assign(socket, { recycle });
}

function recycle(chunk: Uint8Array): void {
  if (chunk.buffer.byteLength === BUFFER_BYTES && kept.length < KEPT_BUFFERS) kept.push(Buffer.from(chunk.buffer as ArrayBuffer));
}
