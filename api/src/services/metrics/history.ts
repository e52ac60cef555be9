// Resource use of a sandbox in the past, as its host has kept it. Reads no guest: it wakes nothing
// and is no use of the sandbox.
import type { MetricsHistory } from '@berth/contract/metrics/metrics.ts';
import { HostError } from '../../hosts/error.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import type { ServiceContext } from '../context/context.ts';
import { explainHostFailure } from '../hosts/failure.ts';

/**
 * Throws `sandbox_state_conflict`, `metrics_history_unsupported`, `sandbox_unreachable` or
 * `host_unavailable`.
 */
export async function metricsHistory(
  context: ServiceContext,
  sandbox: LocatedSandboxRow,
  windowSeconds: number,
  signal: AbortSignal,
): Promise<MetricsHistory> {
  requireLegal('metrics_history', sandbox.status);
  // The sandbox failed before a host was chosen.
  if (sandbox.host_url === null)
    throw new CodedError('sandbox_state_conflict', `the sandbox is ${sandbox.status} and has no VM`);
  try {
    const host = context.hosts.at(sandbox.host_url);
    const { stepSeconds, points } = await host.metricsHistory(sandbox.id, windowSeconds, { signal });
    return {
      stepSeconds,
      points: points.map((point) => ({
        at: new Date(point.atUnixMs).toISOString(),
        cpuUsedPercent: point.cpuUsedPercent,
        residentMemoryMib: point.residentMib,
        unsharedMemoryMib: point.unsharedMib,
        diskUsedMib: point.diskUsedMib,
        receivedBytesPerSecond: point.networkInPerSecond,
        sentBytesPerSecond: point.networkOutPerSecond,
      })),
    };
  } catch (error) {
    if (error instanceof HostError && error.code === 'route_not_found') {
      throw new CodedError(
        'metrics_history_unsupported',
        "the sandbox's host runs an earlier release, which keeps no history of metrics; update the host",
        { cause: error },
      );
    }
    throw await explainHostFailure(context, sandbox.id, 'metrics_history', error);
  }
}
