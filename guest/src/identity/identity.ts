// Gives a restored guest its identity: secret, clock, random numbers, names, SSH keys, size. Fails
// closed: the new secret takes effect first, and no call runs under it until every part is applied
// and read back. Never uses the daemon's random generators, which the template cloned.
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import type { GuestIdentity, GuestIdentityResult } from '@berth/protocol/calls/identity.ts';
import type { GuestConfig, GuestUser } from '../machine/config.ts';
import { ClockStep } from '../machine/clock.ts';
import type { IdentityMarker } from './marker.ts';
import type { KernelCalls } from '../machine/kernel-calls.ts';
import { part } from '../machine/part.ts';
import type { Secret } from '../access/secret.ts';
import { applySize, type Size } from '../machine/size.ts';
import { switchSshServer } from './ssh-server.ts';

const SSH_FOLDER = '/etc/ssh';

export class IdentityStep {
  readonly #config: GuestConfig;
  readonly #secret: Secret;
  /** Absent when identities are stored but not applied. */
  readonly #machine: { kernel: KernelCalls; marker: IdentityMarker } | undefined;

  constructor(
    config: GuestConfig,
    secret: Secret,
    machine: { kernel: KernelCalls; marker: IdentityMarker } | undefined,
  ) {
    this.#config = config;
    this.#secret = secret;
    this.#machine = machine;
  }

  /** `receivedAt`: of `performance.now()`. Rejects with a message that names the failed part. */
  async apply(identity: GuestIdentity, receivedAt: number, signal: AbortSignal): Promise<GuestIdentityResult> {
    await part('secret', () => this.#secret.begin(identity.secret));
    const result = await this.#applyAll(identity, receivedAt, signal);
    await part('secret', () => this.#secret.complete());
    return result;
  }

  /** Removes the identity: the guest is a template again. */
  forget(): void {
    this.#machine?.marker.remove();
    this.#secret.forget();
  }

  async #applyAll(identity: GuestIdentity, receivedAt: number, signal: AbortSignal): Promise<GuestIdentityResult> {
    if (this.#machine === undefined) return recorded(identity);

    const { kernel, marker } = this.#machine;
    const clock = new ClockStep(identity, receivedAt);
    await part('clock and random numbers', () => clock.apply(kernel));
    await part('hostname', () => setHostname(identity.hostname));
    await part('machine-id', () => replaceFile('/etc/machine-id', `${identity.machineId}\n`, 0o444));
    await part('ssh host key', () => setHostKey(identity.sshHostKey));
    await part('ssh authorized keys', () => setAuthorizedKeys(this.#config.user, identity.sshAuthorizedKeys));
    await part('ssh server', () => switchSshServer(identity.sshAuthorizedKeys.length > 0, signal));
    const size = await applySize(identity, signal);
    await part('marker', () => marker.put());
    return part('reading back', () => readBack(identity, clock, size));
  }
}

function recorded(identity: GuestIdentity): GuestIdentityResult {
  const { machineId, vcpu, memoryMib, diskGib } = identity;
  return { hostname: identity.hostname, machineId, clockUnixMs: Date.now(), vcpu, memoryMib, diskGib };
}

function readBack(identity: GuestIdentity, clock: ClockStep, size: Size): GuestIdentityResult {
  const result: GuestIdentityResult = {
    hostname: hostname(),
    machineId: readFileSync('/etc/machine-id', 'latin1').trim(),
    clockUnixMs: clock.readBack(),
    ...size,
  };
  for (const name of ['hostname', 'machineId', 'vcpu', 'memoryMib'] as const)
    if (result[name] !== identity[name]) throw new Error(`${name} is ${result[name]} instead of ${identity[name]}`);

  return result;
}

function setHostname(name: string): void {
  writeFileSync('/proc/sys/kernel/hostname', name);
  replaceFile('/etc/hostname', `${name}\n`, 0o644);
  const lines = readFileSync('/etc/hosts', 'utf8').split('\n');
  const others = lines.filter((line) => line !== '' && !/^127\.0\.1\.1\s/.test(line));
  replaceFile('/etc/hosts', [...others, `127.0.1.1 ${name}`, ''].join('\n'), 0o644);
}

/** Removes every SSH host key of the guest. */
export function removeHostKeys(): void {
  for (const name of readdirSync(SSH_FOLDER))
    if (/^ssh_host_.*_key(\.pub)?$/.test(name)) rmSync(`${SSH_FOLDER}/${name}`);
}

function setHostKey(pair: { privateKey: string; publicKey: string }): void {
  mkdirSync(SSH_FOLDER, { recursive: true });
  removeHostKeys();
  replaceFile(`${SSH_FOLDER}/ssh_host_ed25519_key`, endLine(pair.privateKey), 0o600);
  replaceFile(`${SSH_FOLDER}/ssh_host_ed25519_key.pub`, endLine(pair.publicKey), 0o644);
}

function setAuthorizedKeys(user: GuestUser, keys: readonly string[]): void {
  const folder = `${user.home}/.ssh`;
  const existing = lstatSync(folder, { throwIfNoEntry: false });
  if (existing !== undefined && !existing.isDirectory()) {
    // Following a link, this root process would change another folder.
    renameSync(folder, `${folder}.set-aside`);
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  chownSync(folder, user.uid, user.gid);
  replaceFile(`${folder}/authorized_keys`, keys.map(endLine).join(''), 0o600, user);
}

/** Writes a temporary file and renames it: a link of that name is replaced, not followed. */
function replaceFile(path: string, content: string, mode: number, owner?: { uid: number; gid: number }): void {
  const fresh = `${path}.berth-new`;
  rmSync(fresh, { force: true });
  writeFileSync(fresh, content, { mode, flag: 'wx' });
  if (owner !== undefined) chownSync(fresh, owner.uid, owner.gid);

  renameSync(fresh, path);
}

function endLine(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}
