// The ssh server of the machine: off in the image, on from the moment somebody may sign in, and
// after every boot of its disk from then on. It is a service of the machine's supervisor (runit),
// which is told through the files that it has for that.
import { closeSync, constants, existsSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const SERVICE = '/etc/sv/ssh';
/** With this file the supervisor leaves the service alone. */
const DOWN = `${SERVICE}/down`;
/** The supervisor reads single letters from it. */
const CONTROL = `${SERVICE}/supervise/control`;
const PORT = 22;
/** State of a listening socket in the kernel's table. */
const LISTENING = '0A';
const LOOK_EVERY_MS = 20;
/** An emulated machine takes a second. */
const START_DEADLINE_MS = 15_000;

/**
 * Switches it on or off. Resolves once it listens, so that who was told that the machine is there
 * finds it; one that does not start in time is the log's: the machine is of use without it.
 */
export async function switchSshServer(on: boolean, signal: AbortSignal): Promise<void> {
  if (on === !existsSync(DOWN)) return;

  if (on) rmSync(DOWN);
  else writeFileSync(DOWN, '');

  tell(on ? 'u' : 'd');
  if (on) await untilListening(signal);
}

async function untilListening(signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + START_DEADLINE_MS;
  while (!listens()) {
    signal.throwIfAborted();
    if (performance.now() > deadline) {
      console.error(`the ssh server does not listen after ${START_DEADLINE_MS / 1_000} s`);
      return;
    }
    await delay(LOOK_EVERY_MS);
  }
}

function tell(letter: 'u' | 'd'): void {
  const control = openSync(CONTROL, constants.O_WRONLY | constants.O_NONBLOCK);
  try {
    writeSync(control, letter);
  } finally {
    closeSync(control);
  }
}

/** Asks the kernel and not the server, which would begin a session with who connects. */
function listens(): boolean {
  const port = `:${PORT.toString(16).padStart(4, '0').toUpperCase()}`;
  return readFileSync('/proc/net/tcp', 'latin1')
    .split('\n')
    .some((line) => {
      const [, local = '', , state] = line.trim().split(/\s+/);
      return local.endsWith(port) && state === LISTENING;
    });
}
