// Admission on a small file system with `BERTH_DISK_OVERCOMMIT=1`: the VMs write all that they may,
// and others can still write.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { readHost, type HostFigures } from '../../../src/vm/admission.ts';
import { LifecycleFixture, SMALL, vmIdOf } from './lifecycle-fixture.ts';

const GIB = 2 ** 30;
const LARGE = { ...SMALL, memoryMib: 4_096, diskGib: 12 };
/** As long as the guest's pages and their index, whatever they contain. */
const INDEX_SHARE = 1 / 256;

describe('VMs on a small file system without overcommit', () => {
  let folder: string;
  let mounted: string;
  let host: LifecycleFixture;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-small-disk-'));
    const image = join(folder, 'image');
    mounted = join(folder, 'mounted');
    writeFileSync(image, '');
    truncateSync(image, 48 * GIB);
    mkdirSync(mounted);
    execFileSync('mkfs.ext4', ['-q', '-E', 'lazy_itable_init=1,lazy_journal_init=1', image]);
    execFileSync('mount', ['-o', 'loop', image, mounted]);
    // Of the database, for example.
    allocate(join(mounted, 'of-others'), 5 * GIB);
    host = await LifecycleFixture.start({}, mounted);
    host.readDisk = (vmFolders) => {
      const { diskTotalGib, diskFreeGib, diskOthersGib } = readHost(mounted, vmFolders);
      return { diskTotalGib, diskFreeGib, diskOthersGib } satisfies Partial<HostFigures>;
    };
    host.driver.onSleep = async ({ snapshotFolder, size }) => {
      allocate(join(snapshotFolder, 'memory'), Math.ceil(size.memoryMib * 2 ** 20 * (1 + INDEX_SHARE)));
    };
  });
  afterEach(async () => {
    await host.stop();
    execFileSync('umount', [mounted]);
    await rm(folder, { recursive: true });
  });

  /** Creates VMs of the size until the host refuses one; each fills its disk. */
  async function createAll(spec: typeof SMALL): Promise<string[]> {
    const ids: string[] = [];
    for (const letter of 'abcdefgh') {
      const id = vmIdOf(letter);
      try {
        await host.lifecycle.create(id, { epoch: 1, spec });
      } catch (error) {
        assert.match(String(error), /not enough diskGib: .* BERTH_DISK_OVERCOMMIT/);
        return ids;
      }
      ids.push(id);
      fillDisk(id, spec.diskGib);
    }
    throw new Error('no create was refused');
  }

  function fillDisk(id: string, diskGib: number): void {
    // Tables of the image: less than a thousandth.
    allocate(join(host.directory.driverFolder(id), 'disk'), Math.ceil(diskGib * GIB * 1.001));
  }

  function othersCanWrite(): void {
    allocate(join(mounted, 'more-of-others'), GIB / 2);
    rmSync(join(mounted, 'more-of-others'));
  }

  for (const [name, spec, count] of [
    ['small', SMALL, 3],
    ['large', LARGE, 2],
  ] as const) {
    it(`of ${name} size leave room for others when all disks are full and all are asleep`, async () => {
      const ids = await createAll(spec);
      assert.equal(ids.length, count);
      for (const id of ids) {
        assert.equal((await host.lifecycle.sleep(id, { epoch: 2 })).status, 'asleep');
        assert.ok(statSync(join(host.directory.snapshotFolder(id), 'memory')).blocks * 512 >= spec.memoryMib * 2 ** 20);
      }
      othersCanWrite();
      // Awake again and asleep again: nothing adds up.
      for (const id of ids) {
        await host.lifecycle.wake(id, { epoch: 3, spec });
        await host.lifecycle.sleep(id, { epoch: 4 });
      }
      othersCanWrite();
    });
  }

  it('cannot grow past the file system by memory alone', async () => {
    await createAll(SMALL);
    await assert.rejects(
      host.lifecycle.resize(vmIdOf('a'), { epoch: 2, size: { ...SMALL, memoryMib: 16_384 } }),
      /not enough diskGib: 15 requested/,
    );
    await host.lifecycle.sleep(vmIdOf('a'), { epoch: 3 });
    await assert.rejects(
      host.lifecycle.wake(vmIdOf('a'), { epoch: 4, spec: { ...SMALL, memoryMib: 16_384 } }),
      /not enough diskGib: 15 requested/,
    );
    assert.equal((await host.lifecycle.wake(vmIdOf('a'), { epoch: 5, spec: SMALL })).status, 'running');
  });

  it('get less when others take more', async () => {
    allocate(join(mounted, 'more-of-others'), 13 * GIB);
    assert.equal((await createAll(SMALL)).length, 2);
  });

  it('make room when they are destroyed', async () => {
    const ids = await createAll(SMALL);
    await host.lifecycle.sleep(ids[0] as string, { epoch: 2 });
    await host.lifecycle.destroy(ids[0] as string, 3);
    await host.lifecycle.create(vmIdOf('z'), { epoch: 1, spec: SMALL });
    fillDisk(vmIdOf('z'), SMALL.diskGib);
    await assert.rejects(host.lifecycle.create(vmIdOf('y'), { epoch: 1, spec: SMALL }), /not enough diskGib/);
  });
});

/** Takes the space on the file system without writing it. Throws without room. */
function allocate(path: string, bytes: number): void {
  execFileSync('fallocate', ['--length', String(bytes), path]);
}
