// Command results, metrics and diagnostics of the test server.
import { EXEC_LIMITS } from '../generated/limits.ts';
import { SANDBOX_STATES } from '../generated/contract-tables.ts';
import type { ActivityEntry, Sandbox, SandboxDiagnostics } from '../generated/raw/index.ts';

/** Result of a command, by default exit code 0 without output. A string is stdout. */
export type CommandOutcome = string | { exitCode?: number; stdout?: string; stderr?: string; timedOut?: boolean };
/** Response for an outcome, truncated like the service's. */
export function execResultOf(outcome: CommandOutcome): Record<string, unknown> {
  const {
    exitCode = 0,
    stdout = '',
    stderr = '',
    timedOut = false,
  } = typeof outcome === 'string' ? { stdout: outcome } : outcome;
  const cut = (text: string): string => text.slice(-EXEC_LIMITS.outputBytes);
  const truncated = stdout.length > EXEC_LIMITS.outputBytes || stderr.length > EXEC_LIMITS.outputBytes;
  return { exitCode: timedOut ? 124 : exitCode, stdout: cut(stdout), stderr: cut(stderr), truncated, timedOut };
}

/** Metrics of an idle sandbox. */
export function liveMetrics(
  { allocated_vcpu, allocated_memory_gb, allocated_disk_gb, createdAt }: Sandbox,
  nowMs: number,
): unknown {
  const network = { receivedBytes: 0, sentBytes: 0 };
  const part = (totalMib: number, usedPercent: number): unknown => ({
    totalMib,
    usedMib: (totalMib * usedPercent) / 100,
    usedPercent,
  });
  return {
    sampledAt: new Date(nowMs).toISOString(),
    guest: {
      uptimeSeconds: Math.max(0, (nowMs - Date.parse(createdAt)) / 1_000),
      cpu: { vcpu: allocated_vcpu, usedPercent: null, busySeconds: 0 },
      load: { oneMinute: 0, fiveMinutes: 0, fifteenMinutes: 0 },
      memory: part(allocated_memory_gb * 1_024, 10),
      disk: part(allocated_disk_gb * 1_024, 5),
      network,
      processCount: 1,
    },
    host: { cpuSeconds: 0, residentMemoryMib: 0, unsharedMemoryMib: 0, diskUsedMib: 0, network },
  };
}

const EVENTS = 20;
/** Entries that change neither status, size nor clone. */
const OTHERS = /^sandbox_(?:exec|process|connected|file|folder|egress|updated|variables|metrics)/;

/** Diagnostics with an empty console and no output of git. @param activity newest first */
export function diagnosticsOf(record: Sandbox, activity: readonly ActivityEntry[]): SandboxDiagnostics {
  const { id, status, statusReason, statusChangedAt, wakesFrom, lastWake, createdAt, clone } = record;
  return {
    sandboxId: id,
    status,
    failure: statusReason && { ...statusReason, at: statusChangedAt },
    wakesFrom,
    lastStart: {
      kind: lastWake === null ? 'create' : lastWake.from === 'disk' ? 'boot' : 'wake',
      at: lastWake?.at ?? createdAt,
      reason: lastWake?.reason ?? null,
    },
    clone: clone && { ...clone, output: null, truncated: false },
    ...consoleOf(status),
    events: activity
      .filter(({ sandboxId, kind }) => sandboxId === id && kind.startsWith('sandbox_') && !OTHERS.test(kind))
      .slice(0, EVENTS)
      .map(({ at, kind, reason }) => ({ at, kind, reason })),
  };
}

function consoleOf(status: Sandbox['status']): Pick<SandboxDiagnostics, 'console' | 'consoleMissing'> {
  const missing = (code: string, message: string) => ({ console: null, consoleMissing: { code, message } });
  if (status === 'destroying' || status === 'deleted') return missing('deleted', 'the sandbox is being deleted');
  if (status === 'stopped') return missing('asleep', 'the sandbox is asleep');
  if (!SANDBOX_STATES[status as keyof typeof SANDBOX_STATES].settled)
    return missing('busy', 'the sandbox is changing its status');
  return { console: { text: '', truncated: false, booted: false }, consoleMissing: null };
}
