// Rehearses an identity, a command and file calls while the daemon of a template starts, with
// values that change nothing. A restored guest then has the code compiled and the files cached:
// under emulation its first identity takes a quarter of the time.
import { rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { GuestIdentity } from '@berth/protocol/calls/identity.ts';
import { GUEST_WIRE } from '@berth/protocol/calls/wire.ts';
import { checkValue } from './access/checks.ts';
import type { Commands } from './commands/commands.ts';
import type { GuestConfig } from './machine/config.ts';
import type { Files } from './files/files.ts';
import { onlineCpuCount, onlineMemoryMib, rootDiskGib } from './machine/hotplug.ts';
import type { IdentityMarker } from './identity/marker.ts';
import { IdentityStep, removeHostKeys } from './identity/identity.ts';
import type { KernelCalls } from './machine/kernel-calls.ts';
import { Secret } from './access/secret.ts';

const DEADLINE_MS = 120_000;
const SECRET = 'r'.repeat(43);

/** Rejects when the identity, the command or a file call fails: such a template is unusable. */
export async function rehearse(
  config: GuestConfig,
  { commands, files }: { commands: Commands; files: Files },
  machine: { kernel: KernelCalls; marker: IdentityMarker },
): Promise<void> {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const path = join(config.runFolder, 'rehearsed-secret');
  try {
    const secret = new Secret(path);
    const identity = checkBody('identity', presentIdentity());
    await new IdentityStep(config, secret, machine).apply(identity, performance.now(), signal);
    if (!secret.accepts(`Bearer ${SECRET}`) || secret.accepts('Bearer another'))
      throw new Error('secret: it does not tell callers apart');
  } finally {
    rmSync(path, { force: true });
    machine.marker.remove();
    removeHostKeys();
  }
  const command = await commands.start(checkBody('exec', { command: 'echo', timeoutSeconds: 60 }), signal);
  const { exitCode, stdout } = await command.result;
  if (exitCode !== 0 || stdout !== '\n') throw new Error(`a command ended with exit code ${exitCode}`);

  await rehearseFiles(join(config.user.home, '.berth-rehearsal'), files, signal);
}

/** Checks a body as the server does. */
function checkBody<T>(name: string, body: T): T {
  const schema = GUEST_WIRE.find((call) => call.name === name)?.schemas.body ?? {};
  return checkValue(schema, JSON.parse(JSON.stringify(body)), 'the body') as T;
}

async function rehearseFiles(path: string, files: Files, signal: AbortSignal): Promise<void> {
  const content = Buffer.from('rehearsed');
  try {
    const upload = { bytes: content.length, content: Readable.from([content], { objectMode: false }) };
    await files.write(path, upload, signal);
    const { stream } = await files.read(path, signal);
    const read = Buffer.concat((await stream.toArray()) as Buffer[]);
    if (!read.equals(content)) throw new Error(`a file of ${content.length} bytes came back with ${read.length}`);

    const listing = await files.list('/', 1, signal);
    await listing.stream.toArray();
  } finally {
    rmSync(path, { force: true });
  }
}

/** Current identity of the guest; no secret. The first real identity replaces every part. */
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
