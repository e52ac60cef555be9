// Thread that copies guest pages between QEMU processes and snapshots, one job at a time
// (pages-job.ts). pages-capture.ts and pages-patch.ts do the copying.
import { parentPort } from 'node:worker_threads';
import { messageOf } from '@berth/os/errors.ts';
import { capture } from './pages-capture.ts';
import type { CaptureJob, PagesMessage, PagesRequest, PagesResult, PatchJob, PatchTarget, Stop } from './pages-job.ts';
import { patch, PagesUnusable } from './pages-patch.ts';

/** Destination of the current patch job. Null: cancelled. */
let target: PromiseWithResolvers<PatchTarget | null> | null = null;

parentPort?.on('message', (message: PagesMessage) => {
  if (message.kind === 'job') begin(message);
  else target?.resolve(message.target);
});

function begin({ job, stop }: PagesRequest): void {
  const word = new Int32Array(stop);
  const throwIfStopped = (): void => {
    if (Atomics.load(word, 0) !== 0) throw new Error('the copying of pages was aborted');
  };
  target = Promise.withResolvers();
  const working =
    job.kind === 'capture' ? runCapture(job, throwIfStopped) : runPatch(job, target.promise, throwIfStopped);
  working.then(answer, (error: unknown) => answer({ failure: messageOf(error) }));
}

function answer(result: PagesResult): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(result);
}

async function runCapture(job: CaptureJob, throwIfStopped: Stop): Promise<PagesResult> {
  return { memory: await capture(job, throwIfStopped) };
}

async function runPatch(job: PatchJob, into: Promise<PatchTarget | null>, throwIfStopped: Stop): Promise<PagesResult> {
  try {
    await patch(job, into, throwIfStopped);
    return { patched: true };
  } catch (error) {
    if (error instanceof PagesUnusable) return { unusable: error.message };

    throw error;
  }
}
