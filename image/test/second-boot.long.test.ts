// VMs whose disk is booted again. With an identity the VM keeps its names and keys and waits to be
// woken; without one it is a template.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { guestSizeResult, type GuestIdentity } from '@berth/protocol/calls/identity.ts';
import { guestMetrics } from '@berth/protocol/calls/metrics.ts';
import { defaultCacheFolder } from '../src/config.ts';
import { ensureImage } from '../src/ensure-image.ts';
import type { Image } from '../src/image-folder.ts';
import { bootImage, type BootedVm } from './booted-vm.ts';

const SIZE = { vcpu: 1, memoryMib: 1_024, diskGib: 10 };
const [first, second] = ['a'.repeat(43), 'b'.repeat(43)] as const;
const HOSTNAME = 'sandbox-7';
const MACHINE_ID = '0123456789abcdef0123456789abcdef';
const NAMES =
  'hostname; cat /etc/hostname /etc/machine-id; ' +
  'sudo cat /etc/ssh/ssh_host_ed25519_key /home/berth/.ssh/authorized_keys';

describe('a VM booted again from its disk', { concurrency: false, timeout: 600_000 }, () => {
  const signal = AbortSignal.timeout(600_000);
  let folder: string;
  let image: Image;
  let machine: BootedVm | null = null;

  const boot = async (): Promise<BootedVm> => {
    // Like a crash of the host: nothing is shut down or flushed.
    await machine?.stop();
    machine = null;
    machine = await bootImage(image, folder, signal, join(folder, 'disk.qcow2'));
    return machine;
  };
  const wake = (secret: string) => ({
    secret,
    clockUnixMs: Date.now(),
    entropy: Buffer.alloc(64, 3).toString('base64'),
    ...SIZE,
  });

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-second-boot-'));
    image = await ensureImage({ cacheFolder: defaultCacheFolder(process.env), signal });
    const base = ['-b', image.rootPath, '-F', 'raw', join(folder, 'disk.qcow2')];
    await promisify(execFile)('qemu-img', ['create', '-q', '-f', 'qcow2', ...base]);
  });
  after(async () => {
    await machine?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('keeps its names and keys, has no secret in force and accepts a wake', async () => {
    let booted = await boot();
    const identity: GuestIdentity = {
      ...wake(first),
      hostname: HOSTNAME,
      machineId: MACHINE_ID,
      sshHostKey: { privateKey: 'a private key', publicKey: 'a public key' },
      sshAuthorizedKeys: ['ssh-ed25519 AAAA somebody'],
    };
    const given = await booted.call('POST', '/identity', identity);
    assert.equal(given.status, 200, given.text);
    booted.useSecret(first);
    const names = await booted.run(NAMES);
    assert.deepEqual(names.stdout.split('\n'), [
      HOSTNAME,
      HOSTNAME,
      MACHINE_ID,
      'a private key',
      'ssh-ed25519 AAAA somebody',
      '',
    ]);
    await booted.run('sync');

    booted = await boot();
    assert.deepEqual(await booted.run(NAMES), names);
    const woken = await booted.call('POST', '/wake', wake(second));
    assert.equal(woken.status, 200, woken.text);
    const { clockUnixMs: _, ...size } = guestSizeResult.parse(JSON.parse(woken.text));
    assert.deepEqual(size, SIZE);
    assert.equal((await booted.call('GET', '/health')).status, 401);
    booted.useSecret(second);
    assert.deepEqual(await booted.run(NAMES), names);
  });

  it('reports its metrics, without kernel threads', async () => {
    assert.ok(machine !== null);
    const answer = await machine.call('GET', '/metrics');
    assert.equal(answer.status, 200, answer.text);
    const metrics = guestMetrics.parse(JSON.parse(answer.text));
    assert.ok(metrics.memoryTotalMib > 800 && metrics.memoryTotalMib < 1_024, answer.text);
    assert.ok(metrics.diskTotalMib > 9_000 && metrics.diskUsedMib > 400 && metrics.diskUsedMib < 2_000, answer.text);
    assert.ok(metrics.networkInBytes > 1_000 && metrics.networkOutBytes > 1_000, answer.text);
    const { stdout } = await machine.run('ps --ppid 2 -p 2 --deselect --no-headers | wc -l');
    // The shell, ps and wc started since; the daemon may be refilling its pipes.
    assert.ok(Math.abs(Number(stdout) - metrics.processes) <= 6, `${stdout} and ${answer.text}`);
  });

  it('is a template again after its identity was removed: the next boot rehearses one', async () => {
    assert.ok(machine !== null);
    assert.equal((await machine.call('POST', '/template')).status, 200);
    await machine.run('sync');
    const booted = await boot();
    const { stdout } = await booted.run('cat /etc/machine-id; ls /etc/ssh/ssh_host_* 2>/dev/null');
    assert.equal(stdout, `${'0'.repeat(32)}\n`);
  });
});
