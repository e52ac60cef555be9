// Resource use of a sandbox: live metrics from its host, and samples behind the recommended
// allocation.
import { MACHINE_SIZES, type Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { LiveMetrics, MetricsSample } from '@berth/contract/metrics/metrics.ts';
import type { Actor } from '../../rules/access/access.ts';
import { largerOf, sameSize } from '../../rules/sandboxes/allocation-target.ts';
import { CodedError } from '../../rules/coded-error.ts';
import {
  LONGEST_WINDOW_MS,
  recommendAllocation,
  SHORTEST_WINDOW_MS,
  type UsageSample,
} from '../../rules/metrics/recommendation.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { findLargest } from '../../store/hosts/hosts.ts';
import {
  findSampleBefore,
  insertMetricsSample,
  listMetricsSamples,
  trimMetricsSamples,
  type SampleRetention,
} from '../../store/metrics/samples.ts';
import {
  allocationOf,
  lockSandbox,
  pendingOf,
  writeRecommendation,
  type LocatedSandboxRow,
} from '../../store/sandboxes/sandboxes.ts';
import type { DatabaseTransaction, MetricsSampleRow, SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';
import { explainHostFailure } from '../hosts/failure.ts';
import { planInForce } from '../billing/plans.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';
import { boundFigures, cpuShareBetween, percentOf, type VmFigures } from './vm-figures.ts';

/** Nothing reads older samples. Beyond the short window, one sample a minute is enough. */
const RETENTION: SampleRetention = { keptMs: LONGEST_WINDOW_MS, denseMs: SHORTEST_WINDOW_MS, maxSamples: 2_000 };
/** Age of a baseline sample for live CPU use. A mean over hours would not be a live figure. */
const COUNTED_FROM = { minAgeMs: 1_000, maxAgeMs: SHORTEST_WINDOW_MS };

/**
 * Current use of the sandbox. Throws `sandbox_state_conflict`, `sandbox_unreachable` or
 * `host_unavailable`.
 */
export async function liveMetrics(
  context: ServiceContext,
  sandbox: LocatedSandboxRow,
  signal: AbortSignal,
): Promise<LiveMetrics> {
  const figures = await readFigures(context, sandbox, 'metrics_live', signal);
  const before = await findSampleBefore(context.db, sandbox.id, COUNTED_FROM);
  const share = before === undefined ? null : cpuShareSince(before, figures, allocationOf(sandbox));
  const { guest, host } = figures;
  const cpu = { ...guest.cpu, usedPercent: share === null ? null : percentOf(share) };
  return { sampledAt: new Date().toISOString(), guest: { ...guest, cpu }, host };
}

/**
 * Stores a sample; returns the allocation in force and the recommended one. For an `auto` sandbox,
 * a changed recommendation becomes the pending allocation. Throws as {@link liveMetrics}, without
 * storing anything.
 */
export async function sampleMetrics(
  context: ServiceContext,
  actor: Actor,
  sandbox: LocatedSandboxRow,
  signal: AbortSignal,
): Promise<MetricsSample> {
  const figures = await readFigures(context, sandbox, 'metrics_sample', signal);
  return await context.db.transaction().execute(async (trx) => {
    const locked = await lockSandbox(trx, sandbox.id);
    if (locked === undefined) throw new Error(`the row of ${sandbox.id} is gone`);
    requireLegal('metrics_sample', locked.status);
    const sample = await recordSample(trx, sandbox, figures);
    const current = allocationOf(locked);
    const recommended = recommendAllocation({
      now: sample.at.getTime(),
      current,
      largest: await largestFor(context, trx, locked),
      samples: (await listMetricsSamples(trx, sandbox.id)).map(toUsage),
    });
    const storedAsPending = await storeRecommendation(trx, locked, recommended.allocation);
    const answer: Omit<MetricsSample, 'reason'> = {
      sampledAt: sample.at.toISOString(),
      currentAllocation: current,
      recommendedAllocation: recommended.allocation,
      storedAsPending,
      cpuUsedPercent: sample.cpu_used === null ? null : percentOf(sample.cpu_used),
      memoryUsedPercent: figures.guest.memory.usedPercent,
      diskUsedPercent: figures.guest.disk.usedPercent,
    };
    await insertActivity(trx, {
      orgId: locked.org_id,
      projectId: locked.project_id,
      sandboxId: locked.id,
      actor,
      kind: 'sandbox_metrics_sample',
      details: { ...answer },
    });
    return { ...answer, reason: recommended.reason };
  });
}

async function readFigures(
  context: ServiceContext,
  sandbox: LocatedSandboxRow,
  action: 'metrics_live' | 'metrics_sample',
  signal: AbortSignal,
): Promise<VmFigures> {
  requireLegal(action, sandbox.status);
  if (sandbox.host_url === null) throw new Error(`sandbox ${sandbox.id} is ${sandbox.status} without a host`);
  try {
    const metrics = await context.hosts.at(sandbox.host_url).metrics(sandbox.id, { signal });
    return boundFigures(metrics, mostOf(sandbox));
  } catch (error) {
    throw await explainHostFailure(context, sandbox.id, action, error);
  }
}

/** Upper bounds of the VM's resources; during a resize, already the target's. */
function mostOf(sandbox: SandboxRow): Allocation {
  const pending = pendingOf(sandbox);
  return sandbox.resizing && pending !== null ? largerOf(allocationOf(sandbox), pending) : allocationOf(sandbox);
}

function cpuShareSince(before: MetricsSampleRow, { guest }: VmFigures, { vcpu }: Allocation): number | null {
  const earlier = { uptimeSeconds: before.uptime_seconds, busySeconds: before.cpu_busy_ms / 1_000 };
  return cpuShareBetween(earlier, { uptimeSeconds: guest.uptimeSeconds, busySeconds: guest.cpu.busySeconds }, vcpu);
}

async function recordSample(
  trx: DatabaseTransaction,
  sandbox: SandboxRow,
  figures: VmFigures,
): Promise<MetricsSampleRow> {
  const allocation = allocationOf(sandbox);
  const before = await findSampleBefore(trx, sandbox.id, COUNTED_FROM);
  const sample = await insertMetricsSample(trx, {
    sandboxId: sandbox.id,
    uptimeSeconds: figures.guest.uptimeSeconds,
    cpuBusyMs: figures.guest.cpu.busySeconds * 1_000,
    allocation,
    cpuUsed: before === undefined ? null : cpuShareSince(before, figures, allocation),
    memoryUsed: figures.memoryUsed,
    diskUsed: figures.diskUsed,
  });
  await trimMetricsSamples(trx, sandbox.id, RETENTION);
  return sample;
}

/**
 * True if the recommendation is now pending. Requested allocations and the target of a resize in
 * progress are left alone.
 */
async function storeRecommendation(
  trx: DatabaseTransaction,
  sandbox: SandboxRow,
  recommended: Allocation,
): Promise<boolean> {
  const pending = pendingOf(sandbox);
  if (sandbox.profile !== 'auto' || sandbox.resizing || (pending !== null && !sandbox.pending_recommended))
    return false;
  const wanted = sameSize(recommended, allocationOf(sandbox)) ? null : recommended;
  const unchanged = wanted === null ? pending === null : pending !== null && sameSize(wanted, pending);
  if (!unchanged) await writeRecommendation(trx, sandbox.id, wanted);
  return wanted !== null;
}

/**
 * Largest allocation to recommend: the minimum of plan and host limits per resource. Without a
 * plan, the current allocation.
 */
async function largestFor(context: ServiceContext, trx: DatabaseTransaction, sandbox: SandboxRow): Promise<Allocation> {
  let largest: Allocation | null;
  try {
    const { largestSize } = await planInForce(context, trx, sandbox.org_id);
    largest = largestSize === null ? null : MACHINE_SIZES[largestSize];
  } catch (error) {
    if (error instanceof CodedError && error.code === 'no_active_plan') return allocationOf(sandbox);
    throw error;
  }
  const host = sandbox.host_id === null ? undefined : await findLargest(trx, sandbox.host_id);
  const most = (amount: keyof Allocation, ofHost: number | undefined): number =>
    Math.min(largest?.[amount] ?? Infinity, Math.floor(ofHost ?? Infinity));
  return {
    vcpu: most('vcpu', host?.vcpu),
    memoryGb: most('memoryGb', host && host.memoryMib / 1_024),
    diskGb: most('diskGb', host?.diskGib),
  };
}

function toUsage(row: MetricsSampleRow): UsageSample {
  return {
    at: row.at.getTime(),
    allocation: { vcpu: row.vcpu, memoryGb: row.memory_gb, diskGb: row.disk_gb },
    cpuUsed: row.cpu_used,
    memoryUsed: row.memory_used,
    diskUsed: row.disk_used,
  };
}
