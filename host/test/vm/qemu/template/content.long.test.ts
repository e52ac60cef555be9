// Snapshots and disks of real VMs on a template of equal facts and other bytes, and as copies.
// Needs root, the image and the template.
import { OPEN_EGRESS } from '@berth/protocol/egress.ts';
import assert from 'node:assert/strict';
import { copyFile, mkdir, mkdtemp, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { readConfig } from '../../../../src/config.ts';
import { DIRECT_GUESTS } from '../../../../src/guest/client.ts';
import { newestImageFolder } from '../../../../src/make-driver.ts';
import { outputOf, snapshotFolderOf, Subject, type SubjectVm } from '../../../../src/vm/conformance/subject.ts';
import { DriverError, SnapshotUnusable, type VmDriver } from '../../../../src/vm/driver.ts';
import { createQemuDriver } from '../../../../src/vm/qemu/driver.ts';
import { TEMPLATE_FILES, VM_FILES } from '../../../../src/vm/qemu/machine/argv.ts';
import { newMark, writeMark } from '../../../../src/vm/qemu/machine/disk.ts';
import { readManifest, writeManifest } from '../../../../src/vm/qemu/snapshot/manifest.ts';
import { stateOf } from '../../../../src/vm/qemu/start/state.ts';
import { Bases } from '../../../../src/vm/qemu/template/bases.ts';
import { templatesFolder, writeTemplateRecord } from '../../../../src/vm/qemu/template/template.ts';
import { enterPrivateHost } from '../../private-host.ts';

enterPrivateHost();

const SPEC = { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'berth', sshAuthorizedKeys: [] };
const { cacheFolder, imageFolder } = readConfig([], process.env);
const image = imageFolder ?? (await newestImageFolder(cacheFolder));

const driverOn = (cache: string, instanceId: string): VmDriver =>
  createQemuDriver({
    cacheFolder: cache,
    imageFolder: image,
    guests: DIRECT_GUESTS,
    network: { instanceId, dataFolder: '/nonexistent', cidr: '10.200.0.0/16', idleSlots: 1 },
    log: () => {},
  });

let subject: Subject;
/** Another host: its template has the same facts, and one other byte in its memory. */
let elsewhere: VmDriver;
let otherId: string;
let otherCache: string;
before(async () => {
  otherCache = await mkdtemp('/var/tmp/berth-other-');
  const { template } = (await Bases.open(cacheFolder, image)).current;
  const made = join(otherCache, 'made');
  await mkdir(made);
  await mkdir(templatesFolder(otherCache), { mode: 0o700 });
  for (const name of await readdir(templatesFolder(cacheFolder))) {
    if (name.startsWith('accelerator-'))
      await copyFile(join(templatesFolder(cacheFolder), name), join(templatesFolder(otherCache), name));
  }
  for (const name of Object.values(TEMPLATE_FILES)) await copyFile(join(template.folder, name), join(made, name));
  await using memory = await open(join(made, TEMPLATE_FILES.memory), 'r+');
  const { size } = await memory.stat();
  await memory.write(Buffer.of(1), 0, 1, size - 1);
  otherId = await writeTemplateRecord(made, template.facts, template);
  await rename(made, join(templatesFolder(otherCache), otherId));
  assert.notEqual(otherId, template.templateId);

  subject = await Subject.prepare(() => driverOn(cacheFolder, 'contents'));
  elsewhere = driverOn(otherCache, 'elsewher');
  await elsewhere.prepare();
});
after(async () => {
  await subject.close();
  await elsewhere.close();
  await rm(otherCache, { recursive: true });
});

const attempt = (vm: SubjectVm, templateId?: string) => ({
  ...subject.existing(vm),
  state: { ...subject.existing(vm).state, ...(templateId === undefined ? {} : { templateId }) },
  snapshotFolder: snapshotFolderOf(vm),
  egress: OPEN_EGRESS,
  saveState: () => Promise.reject(new Error('the VM was started')),
  beforeContinue: () => Promise.reject(new Error('the VM was resumed')),
});

test('a snapshot and its disk are refused by a template of equal facts and other bytes', async () => {
  const vm = await subject.create(SPEC);
  await outputOf(vm.client, 'echo kept >/dev/shm/note');
  const { templateId } = stateOf(subject.existing(vm).state);
  await subject.sleep(vm, SPEC);
  const folder = snapshotFolderOf(vm);
  await assert.rejects(elsewhere.wake(attempt(vm)), (error: Error) => {
    assert.ok(error instanceof DriverError);
    assert.match(error.message, new RegExp(`template ${templateId} is missing`));
    return true;
  });
  await assert.rejects(elsewhere.boot(attempt(vm)), new RegExp(`template ${templateId} is missing`));

  // A record and a manifest that name the other template, as with ids made from facts.
  const manifest = await readManifest(folder);
  await writeManifest(folder, { ...manifest, templateId: otherId });
  const refusal = new RegExp(`the disk is based on template ${templateId}, not on ${otherId}`);
  await assert.rejects(elsewhere.wake(attempt(vm, otherId)), refusal);
  await assert.rejects(elsewhere.boot(attempt(vm, otherId)), refusal);

  await writeManifest(folder, manifest);
  await subject.wake(vm);
  assert.equal(await outputOf(vm.client, 'cat /dev/shm/note'), 'kept');
  await subject.destroy(vm);
});

test('a snapshot wakes with a copy of its disk, but not with one that ran since', async () => {
  const vm = await subject.create(SPEC);
  const disk = join(vm.folder, VM_FILES.disk);
  await outputOf(vm.client, 'echo kept >/dev/shm/note');
  await subject.sleep(vm, SPEC);
  await replaceByCopy(disk);
  await subject.wake(vm);
  assert.equal(await outputOf(vm.client, 'cat /dev/shm/note'), 'kept');

  await subject.sleep(vm, SPEC);
  await replaceByCopy(disk);
  await writeMark(disk, stateOf(subject.existing(vm).state).templateId, newMark());
  await assert.rejects(subject.driver.wake(attempt(vm)), (error: Error) => {
    assert.ok(error instanceof SnapshotUnusable);
    assert.match(error.message, /the disk was changed since the snapshot was taken/);
    return true;
  });
  await subject.destroy(vm);
});

/** Gives the disk another inode and another time. */
async function replaceByCopy(disk: string): Promise<void> {
  await copyFile(disk, `${disk}.copy`);
  await rename(`${disk}.copy`, disk);
}
