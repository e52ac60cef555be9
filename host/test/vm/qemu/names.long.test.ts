// A real VM that dies right after its creation, before its guest has written the identity to the
// disk. Needs root, the image and the template.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { vmView, type VmView } from '@berth/protocol/host.ts';
import { readConfig } from '../../../src/config.ts';
import { parseState } from '../../../src/vm/qemu/start/state.ts';
import { endProcess } from '@berth/os/process-identity.ts';
import { DataKeys } from '../../../src/vm/directory/data-keys.ts';
import { VmDirectory } from '../../../src/vm/directory/record.ts';
import { DaemonFixture } from '../../daemon/daemon-process.ts';
import { SMALL, vmIdOf } from '../lifecycle/lifecycle-fixture.ts';
import { enterPrivateHost } from '../private-host.ts';

enterPrivateHost();

/** The host's own deadline, and time to clean up. */
const BOOT_MS = 170_000;
const A = vmIdOf('a');
const SPEC = { ...SMALL, hostname: 'named', sshAuthorizedKeys: ['ssh-ed25519 AAAA someone'] };

describe('a VM that dies just after its creation', () => {
  let daemon: DaemonFixture;
  before(async () => {
    daemon = await DaemonFixture.make([
      '--driver',
      'qemu',
      '--cache-dir',
      readConfig([], process.env).cacheFolder,
      '--pool-max',
      '0',
    ]);
    await daemon.start();
  });
  after(async () => {
    await daemon.call('DELETE', `/vms/${A}?epoch=9`);
    await daemon.end('SIGKILL');
    await daemon.remove();
  });

  async function view(): Promise<VmView> {
    return vmView.parse((await daemon.call('GET', `/vms/${A}`)).body);
  }

  /** Kills the process, like a power cut of this VM alone, and boots the VM from its disk. */
  async function killAndReboot(epoch: number): Promise<void> {
    const found = await directory().read(A);
    assert.ok(found.kind === 'record');
    const state = parseState(found.record.driverState);
    assert.ok(state?.process);
    await endProcess(state.process);
    await becomes('dead');
    const { status, body } = await daemon.call('POST', `/vms/${A}/wake`, { epoch, spec: SPEC });
    assert.equal(status, 200, JSON.stringify(body));
    const woken = vmView.parse(body);
    assert.deepEqual([woken.status, woken.woke?.from], ['running', 'disk']);
  }

  async function becomes(status: VmView['status']): Promise<void> {
    const deadline = AbortSignal.timeout(BOOT_MS);
    for (let seen = await view(); seen.status !== status; seen = await view()) {
      assert.ok(!(status === 'running' && seen.status === 'dead'), seen.reason);
      await delay(200, undefined, { signal: deadline });
    }
  }

  function directory(): VmDirectory {
    return new VmDirectory(join(daemon.root, 'host', 'vms'), new DataKeys(join(daemon.root, 'keys')));
  }

  async function outputOf(command: string): Promise<string> {
    const { status, body } = await daemon.call('POST', `/vms/${A}/exec`, { command, timeoutSeconds: 60 });
    assert.equal(status, 200, JSON.stringify(body));
    return (body as { stdout: string }).stdout;
  }

  it('boots its disk with the names and keys it was given and those its tenant changed later', async () => {
    assert.equal((await daemon.call('PUT', `/vms/${A}`, { epoch: 1, spec: SPEC })).status, 200);
    await killAndReboot(2);
    const names = await directory().readNames(A);
    assert.ok(names);
    assert.equal(await outputOf('cat /etc/machine-id'), `${names.machineId}\n`);
    assert.equal(await outputOf('cat /etc/ssh/ssh_host_ed25519_key.pub'), `${names.sshHostKey.publicKey.trimEnd()}\n`);
    assert.equal(
      await outputOf('stat -c %s /etc/ssh/ssh_host_ed25519_key'),
      `${names.sshHostKey.privateKey.trimEnd().length + 1}\n`,
    );
    assert.equal(await outputOf('hostname; cat /etc/hostname'), 'named\nnamed\n');
    assert.equal(await outputOf('cat ~/.ssh/authorized_keys'), `${SPEC.sshAuthorizedKeys[0]}\n`);

    await outputOf('echo ssh-ed25519 BBBB another > ~/.ssh/authorized_keys; sync');
    await killAndReboot(3);
    assert.equal(await outputOf('cat ~/.ssh/authorized_keys'), 'ssh-ed25519 BBBB another\n');
  });
});
