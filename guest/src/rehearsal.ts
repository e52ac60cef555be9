// Goes through an identity and a command once while the daemon of a template starts, with values that change nothing. A restored machine then
// finds the code of both compiled and the files in memory: under emulation its first identity takes a quarter of the time it takes otherwise.
import { rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { GuestIdentity } from '@berth/protocol/guest.ts';
import { checkExecRequest, checkIdentity } from './checks.ts';
import type { Commands } from './commands.ts';
import type { GuestConfig } from './config.ts';
import { onlineCpuCount, onlineMemoryMib, rootDiskGib } from './hotplug.ts';
import type { IdentityMarker } from './identity-marker.ts';
import { IdentityStep, removeHostKeys } from './identity.ts';
import type { KernelCalls } from './kernel-calls.ts';
import { Secret } from './secret.ts';

const DEADLINE_MS = 120_000;
const SECRET = 'r'.repeat(43);

/** Rejects when an identity could not be applied here, or a command not be run: a template with this daemon is of no use. */
export async function rehearse(
  config: GuestConfig,
  commands: Commands,
  machine: { kernel: KernelCalls; marker: IdentityMarker },
): Promise<void> {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const path = join(config.runFolder, 'rehearsed-secret');
  try {
    const secret = new Secret(path);
    const identity = checkIdentity(JSON.parse(JSON.stringify(presentIdentity())));
    await new IdentityStep(config, secret, machine).apply(identity, performance.now(), signal);
    if (!secret.accepts(`Bearer ${SECRET}`) || secret.accepts('Bearer another')) {
      throw new Error('secret: it does not tell callers apart');
    }
  } finally {
    rmSync(path, { force: true });
    machine.marker.remove();
    removeHostKeys();
  }
  const command = await commands.start(checkExecRequest({ command: 'echo', timeoutSeconds: 60 }), signal);
  const { exitCode, stdout } = await command.result;
  if (exitCode !== 0 || stdout !== '\n') {
    throw new Error(`a command ended with exit code ${exitCode}`);
  }
}

/** What the machine is already. Nothing in it is secret, and every part is replaced by the first real identity. */
function presentIdentity(): GuestIdentity {
  return {
    secret: SECRET,
    hostname: hostname(),
    machineId: '0'.repeat(32),
    clockUnixMs: Date.now(),
    entropy: Buffer.alloc(64).toString('base64'),
    sshHostKey: { privateKey: 'none', publicKey: 'none' },
    sshAuthorizedKeys: [],
    vcpu: onlineCpuCount(),
    memoryMib: onlineMemoryMib(),
    diskGib: Math.floor(rootDiskGib()),
  };
}
