import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { endProcess } from '@berth/os/process-identity.ts';
import { DEVICE_STATE_FD } from '../../../../src/vm/qemu/machine/argv.ts';
import { launchQemu, MESSAGES_BYTES_PER_SECOND } from '../../../../src/vm/qemu/process/launch.ts';

const DEADLINE_MS = 180_000;
const NEVER = new AbortController().signal;
/** Reports its pid on the status descriptor like bwrap, then runs the script in QEMU's place. */
const program = (script: string): [string, ...string[]] => [
  'sh',
  '-c',
  `echo "{ \\"child-pid\\": $$ }" >&3; ${script}`,
];

test('a program that floods its messages is read no faster than the limit', async (context) => {
  const startedAt = performance.now();
  const { process } = await launchQemu(program('exec yes >&2'), NEVER);
  context.after(() => endProcess(process));
  const written = (): number => Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${process.pid}/io`, 'latin1'))?.[1]);
  // Allowance beyond the rate: buffers of socket and stream, and the excess of the last read.
  const onTheWay = 2 * MESSAGES_BYTES_PER_SECOND;
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  while (written() < 2 * onTheWay) await delay(10, undefined, { signal: deadline });

  const bytes = written();
  const seconds = Math.ceil((performance.now() - startedAt) / 1_000);
  assert.ok(bytes <= onTheWay + seconds * (MESSAGES_BYTES_PER_SECOND + 65_536), `${bytes} bytes in ${seconds} s`);
});

test('the last messages of an exiting program are its reason', async () => {
  // The process lives until its identity is known.
  const { ended, deviceState } = await launchQemu(
    program(`echo "no such machine" >&2; exec cat <&${DEVICE_STATE_FD}`),
    NEVER,
  );
  deviceState.end();
  if (!ended.aborted) await new Promise((resolve) => ended.addEventListener('abort', resolve, { once: true }));

  assert.match((ended.reason as Error).message, /exited with exit code 0: no such machine/);
});

test('a program with an aborted start is killed', async () => {
  const abort = new AbortController();
  // Never reports a process.
  const launching = launchQemu(['sh', '-c', 'exec sleep 600'], abort.signal);
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'latin1').trim().split(' ').map(Number);
  assert.equal(children.length, 1);
  abort.abort(new Error('overtaken'));
  await assert.rejects(launching, /overtaken/);
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  const [pid = 0] = children;
  const lives = (): boolean => {
    try {
      return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOENT');
      return false;
    }
  };
  while (lives()) await delay(10, undefined, { signal: deadline });
});
