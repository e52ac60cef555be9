// Prepares a computer for its roles: Debian packages, the web console, the image and the template.
// Owns the order and what to skip; every part is idempotent.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { AptError, candidateVersion, ensureBackports, installPackages, updateLists } from '@berth/os/apt/apt.ts';
import { waitForLock } from '@berth/os/file-lock.ts';
import { ensureConsole } from '@berth/console/build/build.ts';
import { ensureTemplate } from '@berth/host/template.ts';
import { ensureImage, type BuildProgress } from '@berth/image/ensure-image.ts';
import { openImage } from '@berth/image/image-folder.ts';
import { hasCode } from '@berth/os/errors.ts';
import type { Config } from '../config/config.ts';
import { findCaller } from '../config/folders.ts';
import { OperatorFailure } from '../output/failure.ts';
import type { Progress, Report } from '../output/progress.ts';
import { QEMU_MIN_VERSION, QEMU_PACKAGES, isAtLeast, isTested, readDistribution, readPackages } from './packages.ts';
import type { PackageSelection, PackageState } from './packages.ts';

const BACKPORTS_FILE = {
  name: 'berth-backports',
  comment: "Written by Berth: the release's QEMU is too old for it.",
};
/** A concurrent set-up may download and build everything. */
const LOCK_WAIT_MS = 60 * 60_000;

interface SetUpContext {
  config: Config;
  progress: Progress;
  environment: Readonly<NodeJS.ProcessEnv>;
  signal: AbortSignal;
}

/** Results of the set-up, as variables for the processes that use them. */
export type Ready = { BERTH_CONSOLE_FOLDER?: string; BERTH_IMAGE_FOLDER?: string };

/**
 * Prepares this computer for its roles: packages, for the control plane the web console, and for a
 * host with QEMU the image and the template. A second run finds everything done. Concurrent runs
 * take turns.
 */
export async function setUp(context: SetUpContext, options: PackageSelection = {}): Promise<Ready> {
  const { config, progress, environment, signal } = context;
  const { cacheFolder, guestCidr, agents } = config;
  await setUpPackages(context, options);
  const ready: Ready = {};
  if (options.roles?.includes('control-plane') !== false)
    ready.BERTH_CONSOLE_FOLDER = await progress.step('web console', () => ensureConsole({ cacheFolder, signal }));
  if (config.driver === 'fake' || options.roles?.includes('host') === false) return ready;

  const caller = findCaller(environment);
  // npm's settings are those of the user who called, as in the launcher.
  const npmConfig = caller.uid === 0 ? {} : { npmConfigFile: join(caller.home, '.npmrc') };
  const given = environment['BERTH_IMAGE_FOLDER'];
  const image = await progress.step('image', (report) =>
    given === undefined || given === ''
      ? ensureImage({ cacheFolder, agents, signal, onProgress: (at) => report(describeBuild(at)), ...npmConfig })
      : openImage(given, { verify: 'remembered', signal }),
  );
  await progress.step('template', (report) => ensureTemplate({ cacheFolder, guestCidr, image, report, signal }));
  return { ...ready, BERTH_IMAGE_FOLDER: image.folder };
}

/** Part of the set-up needed by the database and the API. */
export async function setUpPackages(
  { config, progress, signal }: SetUpContext,
  options: PackageSelection = {},
): Promise<void> {
  await mkdir(config.cacheFolder, { recursive: true, mode: 0o755 });
  const lock = await waitForLock(
    join(config.cacheFolder, 'setup.lock'),
    () => progress.say('• waiting for another setup of this host'),
    AbortSignal.any([signal, AbortSignal.timeout(LOCK_WAIT_MS)]),
  );
  try {
    await ensurePackages(progress, options);
  } finally {
    await lock.release();
  }
}

function describeBuild({ message, done, total }: BuildProgress): string {
  return total === undefined ? message : `${message}: ${done ?? 0} of ${total}`;
}

async function ensurePackages(progress: Progress, options: PackageSelection): Promise<void> {
  const distribution = await readDistribution();
  if (!isTested(distribution))
    progress.say(`! ${distribution.prettyName || 'this system'} is untested: Berth is tested on Debian 12 and 13`);

  const lacking = (await readPackagesOrFail(distribution.prettyName, options)).filter(isLacking);
  if (lacking.length === 0) return;

  const names = lacking.map((state) => state.name);
  progress.say(`• Debian packages to install: ${names.join(', ')}`);
  try {
    await progress.step('Debian packages', (report) => install(lacking, distribution.codename, report));
  } catch (error) {
    throw error instanceof AptError
      ? new OperatorFailure(error.message, { remedy: error.remedy, cause: error })
      : error;
  }
  const still = (await readPackages(options)).filter(isLacking);
  if (still.length > 0)
    throw new OperatorFailure(`still missing after the installation: ${still.map(describe).join(', ')}`);
}

async function readPackagesOrFail(systemName: string, options: PackageSelection): Promise<PackageState[]> {
  try {
    return await readPackages(options);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) {
      throw new OperatorFailure(
        `${systemName || 'this system'} has no dpkg: Berth installs what it needs on Debian 12 and 13 only`,
        {
          cause: error,
        },
      );
    }
    throw error;
  }
}

async function install(lacking: readonly PackageState[], codename: string, report: Report): Promise<void> {
  report('fetching the package lists');
  await updateLists(report);
  const qemu = lacking.filter((state) => QEMU_PACKAGES.includes(state.name)).map((state) => state.name);
  const others = lacking.filter((state) => !QEMU_PACKAGES.includes(state.name)).map((state) => state.name);
  if (others.length > 0) await installPackages(others, report);

  if (qemu.length > 0) {
    const release = await qemuRelease(codename, report);
    await installPackages(qemu, report, release);
  }
}

/** Release for QEMU: undefined for the system's own if recent enough, else its backports. */
async function qemuRelease(codename: string, report: Report): Promise<string | undefined> {
  const own = await candidateVersion('qemu-system-x86');
  if (own !== null && isAtLeast(own, QEMU_MIN_VERSION)) return undefined;

  const release = `${codename}-backports`;
  if ((await ensureBackports(codename, BACKPORTS_FILE)) === 'added') {
    report(`fetching the package lists of ${release}`);
    await updateLists(report);
  }
  const newer = await candidateVersion('qemu-system-x86', release);
  if (newer === null || !isAtLeast(newer, QEMU_MIN_VERSION)) {
    throw new OperatorFailure(
      `this system offers QEMU ${newer ?? own ?? '(none)'}; Berth needs ${QEMU_MIN_VERSION} or newer`,
      {
        remedy: 'install a newer qemu-system-x86 and qemu-utils, then try again',
      },
    );
  }
  return release;
}

function isLacking(state: PackageState): boolean {
  return state.version === null || state.tooOld;
}

function describe(state: PackageState): string {
  return state.version === null ? state.name : `${state.name} (${state.version} is too old)`;
}
