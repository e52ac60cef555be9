// Plan of a chaos run, as data that follows from the seed alone: endless sequences of operations
// for each client, and of faults. `pick` selects the sandbox of an operation when its turn comes.
import type { Random } from '../../world/random.ts';

/** `pick`: position among the client's sandboxes, 0 to 1. `fitting`: prefer a suitable status. */
interface Target {
  pick: number;
  fitting: boolean;
}

export type Verb = 'sleep' | 'wake' | 'renew' | 'destroy';

export type Operation = { pauseMs: number } & (
  | { kind: 'create'; ttlSeconds: number | null; respondAsync: boolean }
  | { kind: 'replay'; otherBody: boolean; pick: number }
  | ({ kind: 'write'; where: 'synced' | 'unsynced' | 'tmpfs'; kib: number; files: number } & Target)
  | ({ kind: 'read' } & Target)
  | ({ kind: 'get' } & Target)
  | { kind: 'list' }
  | ({ kind: Verb; respondAsync: boolean } & Target)
  | ({ kind: 'resize'; vcpu: number; memoryGb: number; diskGb: number } & Target)
  | ({
      kind: 'overtake';
      first: 'sleep' | 'wake' | 'resize';
      second: 'destroy' | 'sleep' | 'write';
      afterMs: number;
    } & Target)
);
type OperationKind = Operation['kind'];

export const LATE_VERBS = ['create', 'sleep', 'wake', 'resize', 'destroy'] as const;

/** A late message to the host daemon. `age`: rank among the outdated epochs; 0 is the newest. */
export interface LateVerb {
  verb: (typeof LATE_VERBS)[number];
  ofDestroyed: boolean;
  pick: number;
  age: number;
  vcpu: number;
  memoryGb: number;
  diskGb: number;
}

export type Disturbance = { afterMs: number } & (
  | { kind: 'kill-api' | 'kill-host' | 'kill-database' | 'kill-all' | 'cut-power'; downMs: number }
  | { kind: 'kill-qemu'; pick: number }
  | { kind: 'hang-qemu' | 'hang-guest'; pick: number; forMs: number }
  | { kind: 'fill-disk'; forMs: number }
  | { kind: 'late-verb'; messages: LateVerb[] }
  | { kind: 'kill-bridge' | 'kill-agent' | 'kill-guest-daemon'; pick: number }
  | { kind: 'late-message'; pick: number; turn: number; ofVoid: boolean }
);
export type DisturbanceKind = Disturbance['kind'];

export const DISTURBANCE_KINDS = [
  'kill-api',
  'kill-host',
  'kill-database',
  'kill-all',
  'cut-power',
  'kill-qemu',
  'hang-qemu',
  'hang-guest',
  'fill-disk',
  'late-verb',
  'kill-bridge',
  'kill-agent',
  'kill-guest-daemon',
  'late-message',
] as const satisfies readonly DisturbanceKind[];

/** Faults that the driver without VMs can have: its guest daemon is its VM. */
export const FAKE_KINDS: readonly DisturbanceKind[] = [
  'kill-api',
  'kill-host',
  'kill-database',
  'kill-all',
  'kill-bridge',
  'kill-agent',
  'late-message',
];

const OPERATION_WEIGHTS: Readonly<Record<OperationKind, number>> = {
  create: 14,
  replay: 3,
  write: 30,
  read: 22,
  get: 5,
  list: 5,
  sleep: 11,
  wake: 14,
  renew: 2,
  destroy: 5,
  resize: 7,
  overtake: 5,
};

/** Added to one of each kind per round: kills dominate, and late messages seldom come alone. */
const FREQUENT: readonly DisturbanceKind[] = [
  'kill-api',
  'kill-host',
  'kill-host',
  'kill-database',
  'kill-qemu',
  'late-verb',
  'kill-bridge',
  'late-message',
  'late-message',
];

/** Operations of one client. */
export function* operationsOf(random: Random): Generator<Operation, never> {
  for (;;) yield operation(random);
}

function operation(random: Random): Operation {
  const kind = random.weighted(OPERATION_WEIGHTS);
  const pauseMs = random.integer(0, 400);
  const target: Target = { pick: random.next(), fitting: random.chance(0.85) };
  switch (kind) {
    case 'create':
      return {
        kind,
        pauseMs,
        ttlSeconds: random.chance(0.25) ? random.integer(8, 60) : null,
        respondAsync: random.chance(0.3),
      };
    case 'replay':
      return { kind, pauseMs, pick: target.pick, otherBody: random.chance(0.3) };
    case 'write':
      return {
        kind,
        pauseMs,
        ...target,
        where: random.weighted({ synced: 6, unsynced: 2, tmpfs: 2 }),
        kib: random.integer(1, 1_024),
        files: random.integer(1, 4),
      };
    case 'sleep':
    case 'wake':
    case 'renew':
    case 'destroy':
      return { kind, pauseMs, ...target, respondAsync: random.chance(0.25) };
    case 'resize':
      return {
        kind,
        pauseMs,
        ...target,
        vcpu: random.integer(1, 3),
        memoryGb: random.integer(1, 3),
        diskGb: random.integer(10, 14),
      };
    case 'overtake': {
      const first = random.pick(['sleep', 'wake', 'resize'] as const);
      return {
        kind,
        pauseMs,
        ...target,
        first,
        second: random.pick(['destroy', 'sleep', 'write'] as const),
        afterMs: random.integer(0, 700),
      };
    }
    default:
      return { kind, pauseMs, ...target };
  }
}

/** Faults of these kinds. `meanMs`: mean time between their starts. */
export function* disturbancesOf(
  random: Random,
  meanMs: number,
  kinds: readonly DisturbanceKind[] = DISTURBANCE_KINDS,
): Generator<Disturbance, never> {
  const bag = [...DISTURBANCE_KINDS, ...FREQUENT].filter((kind) => kinds.includes(kind));
  if (bag.length === 0) throw new Error('there is no kind of disturbance');
  for (;;) for (const kind of random.shuffled(bag)) yield disturbance(kind, random, meanMs);
}

function disturbance(kind: DisturbanceKind, random: Random, meanMs: number): Disturbance {
  const afterMs = random.integer(Math.round(meanMs / 3), Math.round((meanMs * 5) / 3));
  switch (kind) {
    case 'kill-qemu':
    case 'kill-bridge':
    case 'kill-agent':
    case 'kill-guest-daemon':
      return { kind, afterMs, pick: random.next() };
    case 'late-message':
      return { kind, afterMs, pick: random.next(), turn: random.next(), ofVoid: random.chance(0.6) };
    case 'hang-qemu':
    case 'hang-guest':
      return { kind, afterMs, pick: random.next(), forMs: random.integer(1_000, 6_000) };
    case 'fill-disk':
      return { kind, afterMs, forMs: random.integer(2_000, 8_000) };
    case 'late-verb':
      return { kind, afterMs, messages: Array.from({ length: random.integer(1, 4) }, () => lateVerb(random)) };
    default:
      // Half of the parts restart at once, as under a supervisor.
      return { kind, afterMs, downMs: random.chance(0.5) ? 0 : random.integer(200, 4_000) };
  }
}

function lateVerb(random: Random): LateVerb {
  return {
    verb: random.pick(LATE_VERBS),
    ofDestroyed: random.chance(0.3),
    pick: random.next(),
    age: random.chance(0.5) ? 0 : random.next(),
    vcpu: random.integer(1, 3),
    memoryGb: random.integer(1, 3),
    diskGb: random.integer(10, 14),
  };
}
