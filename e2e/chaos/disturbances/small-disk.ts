// A data folder on a dedicated small file system, which can be filled without harm to the host.
// Needs root and a loop device.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const TOOL_DEADLINE_MS = 60_000;
/** Free space left on a full disk: less than any program here writes at once. */
const FREE_BYTES_LEFT = 64 * 1_024;

export class SmallDisk {
  /** Empty folder on the file system. */
  readonly folder: string;
  readonly #parent: string;
  readonly #mountPoint: string;
  #image: string;
  #cuts = 0;

  private constructor(around: string) {
    this.#parent = around;
    this.#mountPoint = join(around, 'disk');
    this.#image = join(around, 'image');
    this.folder = join(this.#mountPoint, 'data');
  }

  static async make(mib: number): Promise<SmallDisk> {
    const disk = new SmallDisk(await mkdtemp(join(tmpdir(), 'berth-chaos-')));
    await mkdir(disk.#mountPoint);
    await tool('truncate', ['-s', `${mib}M`, disk.#image]);
    // No blocks reserved for root: full is full for every user.
    await tool('mkfs.ext4', ['-q', '-m', '0', disk.#image]);
    await tool('mount', ['-o', 'loop', disk.#image, disk.#mountPoint]);
    await mkdir(disk.folder, { mode: 0o755 });
    return disk;
  }

  /** Takes all free space. */
  async fill(): Promise<void> {
    for (let part = 0; part < 30; part += 1) {
      const { bavail, bsize } = await statfs(this.#mountPoint);
      const free = bavail * bsize;
      if (free < FREE_BYTES_LEFT) return;
      try {
        await tool('fallocate', [
          '-l',
          String(part < 10 ? Math.ceil(free * 0.9) : FREE_BYTES_LEFT / 2),
          join(this.#mountPoint, `ballast-${part}`),
        ]);
      } catch (error) {
        // Others write at the same time.
        if (!String((error as { stderr?: unknown }).stderr).includes('No space left')) throw error;
      }
    }
  }

  async free(): Promise<void> {
    for (let part = 0; part < 30; part += 1) await rm(join(this.#mountPoint, `ballast-${part}`), { force: true });
  }

  /**
   * Simulates a power cut of the disk: unflushed data is lost. Processes with open files get errors
   * from now on, and must exit before {@link restorePower}.
   */
  async cutPower(): Promise<void> {
    // EXT4_IOC_SHUTDOWN without a journal flush. No tool makes this call; Perl can.
    const shutdown =
      'open(my $d, "<", $ARGV[0]) or die $!; my $how = pack("L", 2); ioctl($d, 0x8004587D, $how) or die $!';
    await tool('perl', ['-e', shutdown, this.#mountPoint]);
  }

  /**
   * Mounts a copy of the surviving data, as a boot does. The old file system stays alive while any
   * mount namespace on the host holds it.
   */
  async restorePower(): Promise<void> {
    const before = this.#image;
    this.#image = join(this.#parent, `image-${(this.#cuts += 1)}`);
    await tool('cp', ['--sparse=always', before, this.#image]);
    await tool('umount', ['--lazy', this.#mountPoint]);
    await rm(before);
    await tool('mount', ['-o', 'loop', this.#image, this.#mountPoint]);
  }

  /** Unmounts and removes the disk; no process may use it any more. */
  async remove(): Promise<void> {
    await tool('umount', ['--lazy', this.#mountPoint]);
    await rm(this.#parent, { recursive: true, force: true });
  }
}

async function tool(program: string, args: readonly string[]): Promise<void> {
  await run(program, args, { timeout: TOOL_DEADLINE_MS, env: { ...process.env, LC_ALL: 'C' } });
}
