// Makes one connection of two streams of bytes: what comes out of each goes into the other, as fast
// as that one takes it. For host and guest daemon. Imports nothing: the guest daemon bundles it.

/** A socket, or whatever behaves like one. */
export interface ByteStream extends NodeJS.ReadWriteStream {
  readonly destroyed: boolean;
  readonly readableEnded: boolean;
  readonly writableFinished: boolean;
  destroy(): unknown;
  /** Of a socket: closes a TCP connection so that its other end sees a failure and no end. */
  resetAndDestroy?(): unknown;
  readonly remoteFamily?: string | undefined;
  /** Of one that reads into its chunks again: called once with each that nobody needs any more. */
  recycle?(this: void, chunk: Uint8Array): void;
}

export interface SpliceBounds {
  /** Longest silence of both directions together. */
  idleMs?: number;
  /** Longest life, however busy. */
  longestMs?: number;
}

/**
 * `ended`: both directions came to their end. `broken`: one of the streams failed or was closed
 * before.
 */
type SpliceEnd = 'ended' | 'broken' | 'idle' | 'longest';

/**
 * Resolves when both streams are closed, never rejects. The end of one direction is passed on and
 * leaves the other open; a stream that breaks takes the other with it. Both must be opened with
 * `allowHalfOpen`. Who destroys one of them destroys both.
 */
export function splice(
  one: ByteStream,
  other: ByteStream,
  { idleMs, longestMs }: SpliceBounds = {},
): Promise<SpliceEnd> {
  const { promise, resolve } = Promise.withResolvers<SpliceEnd>();
  let end: SpliceEnd = 'ended';
  const cut = (why: SpliceEnd): void => {
    if (end === 'ended') end = why;

    sever(one);
    sever(other);
  };
  if (one.destroyed || other.destroyed) {
    cut('broken');
    return Promise.resolve(end);
  }
  const timers = [
    ...(idleMs === undefined ? [] : [setTimeout(cut, idleMs, 'idle')]),
    ...(longestMs === undefined ? [] : [setTimeout(cut, longestMs, 'longest')]),
  ];
  const idle = idleMs === undefined ? undefined : timers[0];
  let open = 2;
  const join = (from: ByteStream, to: ByteStream): void => {
    from.on('error', () => cut('broken'));
    from.on('close', () => {
      if (!from.readableEnded || !from.writableFinished) cut('broken');

      open -= 1;
      if (open === 0) {
        timers.forEach(clearTimeout);
        resolve(end);
      }
    });
    if (from.recycle === undefined) from.pipe(to);
    else pipeRecycling(from, to, from.recycle);
    from.on('data', () => idle?.refresh());
  };
  join(one, other);
  join(other, one);
  return promise;
}

function pipeRecycling(from: ByteStream, to: ByteStream, recycle: (chunk: Uint8Array) => void): void {
  from.on('data', (chunk: Uint8Array) => {
    // When it failed, whoever was to write it may still hold it.
    const goesOn = to.write(chunk, (error) => {
      if (error === undefined || error === null) recycle(chunk);
    });
    if (!goesOn) from.pause();
  });
  to.on('drain', () => from.resume());
  from.once('end', () => to.end());
}

/** What was cut off must not look whole at the other end; a unix socket has no way to say so. */
function sever(stream: ByteStream): void {
  if (stream.resetAndDestroy !== undefined && stream.remoteFamily !== undefined && !stream.destroyed)
    stream.resetAndDestroy();
  else stream.destroy();
}
