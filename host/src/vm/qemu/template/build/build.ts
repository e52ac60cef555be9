// Builds a template: boot, rehearsal, freeze, durable read-only files, a single rename. Also probes
// the accelerator by the same boot. A cache folder has at most one builder, which clears away the
// leftovers of a killed one.
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, chown, mkdir, open, readdir, realpath, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Image } from '@berth/image/image-folder.ts';
import { z } from 'zod';
import { waitForLock } from '@berth/os/file-lock.ts';
import { DriverError } from '../../../driver.ts';
import { flushFolder } from '@berth/os/durable-file.ts';
import { readProbeFor, writeProbe, type Probe, type ProbeResult } from '../accelerator.ts';
import { readCpuModels } from '../../machine/cpu-models.ts';
import { slowness } from '@berth/os/slowness.ts';
import { JAIL_PATHS, TEMPLATE_FILES } from '../../machine/argv.ts';
import { bootAgain } from '../../start/boot-again.ts';
import { BOOT_DEADLINE_MS } from '../../start/boot.ts';
import type { HostPlatform } from '../../machine/host-platform.ts';
import { createNetwork } from '../../../../network/network.ts';
import { DEFAULT_REGISTRY_FOLDER, readRegistry } from '../../../../network/slots/registry.ts';
import { parseGuestCidr, slotOf, type Network } from '../../../../network/slots/slot.ts';
import type { QemuVersion } from '../../machine/qemu-version.ts';
import { rehearse, type Rehearsed } from './rehearsal.ts';
import { endSlotProcesses } from '../../../../network/slots/slot-processes.ts';
import {
  closeTemplatesFolder,
  findTemplate,
  openTemplate,
  templateFacts,
  templatesFolder,
  writeTemplateRecord,
  type Template,
  type TemplateFacts,
} from '../template.ts';
import { withBootedVm, type BootedVm, type BootOrder } from './boot.ts';

/**
 * A kernel that boots under KVM at all does so in seconds, on a slow computer in as many times
 * more.
 */
const KVM_PROBE_DEADLINE_MS = 30_000;
const BUILD_PREFIX = '.build-';

/** The guest counts as quiet when its vCPU used less than this share of a window. */
const QUIET_WINDOW_MS = 500;
const QUIET_SHARE = 0.1;
const QUIET_DEADLINE_MS = 20_000;

export interface BuildOrder {
  cacheFolder: string;
  image: Image;
  version: QemuVersion;
  host: HostPlatform;
  guestCidr: string;
  report: (message: string) => void;
  signal: AbortSignal;
}

/** The recorded result, or that of a boot under KVM now. */
export async function ensureProbe(order: BuildOrder): Promise<Probe> {
  const known = await readProbeFor(order.cacheFolder, order.version, order.host);
  return known ?? runAsBuilder(order, (network) => probe(order, network));
}

/** The template of this host and image, built if missing or invalid; probes first. */
export async function ensureTemplate(order: BuildOrder): Promise<{ template: Template; probe: Probe; built: boolean }> {
  const known = await readProbeFor(order.cacheFolder, order.version, order.host);
  const existing = known === null ? null : await usable(order, known);
  if (known !== null && existing !== null) return { template: existing, probe: known, built: false };

  return runAsBuilder(order, async (network) => {
    const found = await probe(order, network);
    // Another builder may have built it while this one waited for the lock.
    const template = await usable(order, found);
    return template === null
      ? { template: await build(order, network, found), probe: found, built: true }
      : { template, probe: found, built: false };
  });
}

const factsOf = ({ image, version, host }: BuildOrder, probe: Probe): TemplateFacts =>
  templateFacts(image.imageId, version, probe, host);

async function usable(order: BuildOrder, probe: Probe): Promise<Template | null> {
  try {
    return await findTemplate(order.cacheFolder, factsOf(order, probe));
  } catch (error) {
    if (error instanceof DriverError) {
      order.report(`rebuilding the template: ${error.message}`);
      return null;
    }
    throw error;
  }
}

/** Takes the lock, clears away what a killed builder left, and provides a network for the build. */
async function runAsBuilder<T>(order: BuildOrder, work: (network: Network) => Promise<T>): Promise<T> {
  const folder = templatesFolder(order.cacheFolder);
  await closeTemplatesFolder(order.cacheFolder);
  const lock = await waitForLock(
    join(folder, '.lock'),
    () => order.report('waiting for another builder'),
    order.signal,
  );
  try {
    // Named after the cache folder, so that the next builder finds the slots of a killed one.
    const instanceId = letters(
      createHash('sha256')
        .update(await realpath(folder))
        .digest(),
      8,
    );
    await cleanUp(folder, instanceId, order.guestCidr);
    const network = createNetwork({ instanceId, dataFolder: folder, cidr: order.guestCidr, idleSlots: 1 });
    try {
      await network.prepare();
      await network.reap(new Set());
      return await work(network);
    } finally {
      await network.close();
    }
  } finally {
    await lock.release();
  }
}

async function cleanUp(folder: string, instanceId: string, guestCidr: string): Promise<void> {
  const cidr = parseGuestCidr(guestCidr);
  await mkdir(DEFAULT_REGISTRY_FOLDER, { recursive: true, mode: 0o700 });
  for (const number of (await readRegistry(DEFAULT_REGISTRY_FOLDER, instanceId)).keys())
    await endSlotProcesses(slotOf(cidr, number));

  for (const name of await readdir(folder))
    if (name.startsWith(BUILD_PREFIX)) await rm(join(folder, name), { recursive: true, force: true });
}

async function probe(order: BuildOrder, network: Network): Promise<Probe> {
  const known = await readProbeFor(order.cacheFolder, order.version, order.host);
  if (known !== null) return known;

  const result = await tryKvm(order, network).catch((error: unknown) => {
    // Any failure under KVM counts against KVM; a general failure recurs under TCG.
    if (error instanceof DriverError) return { failure: `a boot under KVM failed: ${error.message}` };

    throw error;
  });
  return writeProbe(order.cacheFolder, order.version, order.host, result);
}

async function tryKvm(order: BuildOrder, network: Network): Promise<ProbeResult> {
  const { supported, chosen, lacks } = await readCpuModels(order.host.cpuVendor, order.signal);
  // KVM without a processor to virtualize: it interprets most instructions.
  if (chosen === null) {
    const missing = lacks.length === 0 ? 'QEMU knows none of them' : `missing features: ${lacks.join(', ')}`;
    return { failure: `KVM on this host has none of the processor models that Berth uses (${missing})` };
  }

  const deadlineMs = Math.round(KVM_PROBE_DEADLINE_MS * slowness());
  order.report(`probing KVM by a boot (at most ${Math.round(deadlineMs / 1_000)} s)`);
  await inBuildFolder(order, async (folder) => {
    const virtualization = { accelerator: 'kvm', cpuModel: chosen } as const;
    await withBootedVm({ ...order, network, folder, virtualization, deadlineMs }, order.signal, (vm) => vm.quit());
  });
  return { cpuModel: chosen, cpuModels: supported };
}

function build(order: BuildOrder, network: Network, probe: Probe): Promise<Template> {
  return bootAgain(
    () => buildOnce(order, network, probe),
    (why) => order.report(`booting again: ${why}`),
  );
}

async function buildOnce(order: BuildOrder, network: Network, probe: Probe): Promise<Template> {
  const { accelerator, cpuModel } = probe;
  const templateId = await inBuildFolder(order, async (folder) => {
    order.report(`booting the template under ${accelerator.toUpperCase()}`);
    const deadlineMs = BOOT_DEADLINE_MS[accelerator];
    const boot: BootOrder = { ...order, network, folder, virtualization: { accelerator, cpuModel }, deadlineMs };
    const rehearsed = await withBootedVm(boot, order.signal, (machine) => freeze(order, machine));
    order.report('recording the template');
    const template = join(folder, 'template');
    await chown(template, 0, 0);
    await chmod(template, 0o755);
    for (const name of Object.values(TEMPLATE_FILES)) await makeDurableAndReadOnly(join(template, name));

    const id = await writeTemplateRecord(template, factsOf(order, probe), rehearsed);
    await rename(template, join(templatesFolder(order.cacheFolder), id));
    await flushFolder(templatesFolder(order.cacheFolder));
    return id;
  });
  const built = await openTemplate(order.cacheFolder, templateId);
  if (built === null) throw new DriverError(`template ${templateId} disappeared after the build`);

  return built;
}

/**
 * The order matters: close connections, wait for a quiet guest, stop vCPUs, save device state. The
 * files written by `quit` then match that moment.
 */
async function freeze(order: BuildOrder, { qmp, process, endpoint, signal, quit }: BootedVm): Promise<Rehearsed> {
  const rehearsed = await rehearse(endpoint, signal, order.report);
  await untilQuiet(process.pid, signal);
  order.report('freezing the template');
  await qmp.command('stop', undefined, z.unknown(), { signal });
  const filename = `${JAIL_PATHS.template}/${TEMPLATE_FILES.devices}`;
  await qmp.command('xen-save-devices-state', { filename }, z.unknown(), { signal });
  await quit();
  return rehearsed;
}

/**
 * Best effort: a guest that never rests makes a valid template that varies more from build to
 * build.
 */
async function untilQuiet(jailPid: number, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + QUIET_DEADLINE_MS;
  let before = cpuMs(jailPid);
  while (performance.now() < deadline) {
    await delay(QUIET_WINDOW_MS, undefined, { signal });
    const now = cpuMs(jailPid);
    if (now - before < QUIET_WINDOW_MS * QUIET_SHARE) return;

    before = now;
  }
}

/** CPU time of the jail's first process and its children, from clock ticks of 10 ms. */
function cpuMs(jailPid: number): number {
  const children = readdirSync(`/proc/${jailPid}/task`).flatMap((task) =>
    readFileSync(`/proc/${jailPid}/task/${task}/children`, 'latin1').trim().split(' ').filter(Boolean),
  );
  const ticksOf = (pid: string): number => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(fields[11]) + Number(fields[12]);
  };
  return [String(jailPid), ...children].reduce((sum, pid) => sum + ticksOf(pid) * 10, 0);
}

async function makeDurableAndReadOnly(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.sync();
    await file.chown(0, 0);
    await file.chmod(0o444);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function inBuildFolder<T>({ cacheFolder }: BuildOrder, work: (folder: string) => Promise<T>): Promise<T> {
  const folder = join(templatesFolder(cacheFolder), `${BUILD_PREFIX}${randomBytes(6).toString('hex')}`);
  await mkdir(folder, { mode: 0o700 });
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function letters(bytes: Uint8Array, count: number): string {
  return Array.from(bytes.subarray(0, count), (byte) => 'abcdefghijklmnopqrstuvwxyz234567'.charAt(byte & 31)).join('');
}
