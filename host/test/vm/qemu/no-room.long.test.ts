// A VM whose host disk is full while its guest writes. Needs root, the image and the template.
import { OPEN_EGRESS } from '@berth/protocol/egress.ts';
import { DIRECT_GUESTS } from '../../../src/guest/client.ts';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfig } from '../../../src/config.ts';
import { outputOf, Subject } from '../../../src/vm/conformance/subject.ts';
import { newestImageFolder } from '../../../src/make-driver.ts';
import { createQemuDriver } from '../../../src/vm/qemu/driver.ts';
import { enterPrivateHost } from '../private-host.ts';

enterPrivateHost();

const DEADLINE_MS = 300_000;
const SPEC = { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'berth', sshAuthorizedKeys: [] };
const { cacheFolder, imageFolder } = readConfig([], process.env);
const image = imageFolder ?? (await newestImageFolder(cacheFolder));

test('a VM pauses on a full host disk and resumes once there is room, also under the next daemon', async (context) => {
  const small = mkdtempSync(join(tmpdir(), 'berth-no-room-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=48m', 'tmpfs', small]);
  // Parent of the suite's VM folders.
  process.env['TMPDIR'] = small;
  let stopped = Promise.withResolvers<void>();
  const driver = () =>
    createQemuDriver({
      cacheFolder,
      imageFolder: image,
      guests: DIRECT_GUESTS,
      network: { instanceId: 'noroom22', dataFolder: '/nonexistent', cidr: '10.200.0.0/16', idleSlots: 1 },
      log: (_level, message) => message.startsWith("the host's disk is full") && stopped.resolve(),
    });
  const subject = await Subject.prepare(driver);
  context.after(async () => {
    await subject.close();
    execFileSync('umount', [small]);
    rmdirSync(small);
  });
  const vm = await subject.create(SPEC);
  const writing = outputOf(
    vm.client,
    "head -c 100000000 /dev/zero | tr '\\0' x >/code/big && sync && md5sum </code/big",
    DEADLINE_MS / 1_000,
  );
  const late = AbortSignal.timeout(DEADLINE_MS);
  const expired = new Promise<never>((_resolve, reject) => late.addEventListener('abort', () => reject(late.reason)));
  expired.catch(() => undefined);
  await Promise.race([stopped.promise, expired]);

  await subject.replaceDriver();
  stopped = Promise.withResolvers<void>();
  const recovered = await subject.driver.recover(vm.folder, vm.saved.at(-1) ?? {}, OPEN_EGRESS);
  assert.ok(recovered);
  await Promise.race([stopped.promise, expired]);

  execFileSync('mount', ['-o', 'remount,size=400m', small]);
  const expected = execFileSync('sh', ['-c', "head -c 100000000 /dev/zero | tr '\\0' x | md5sum"], {
    encoding: 'utf8',
  });
  assert.equal(await Promise.race([writing, expired]), expected.trim());
});
