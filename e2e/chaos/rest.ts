// End of a run: waits for rest, compares the clients' models, the service's responses and the
// host's state, then destroys everything and checks that nothing is left.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import { deadlineOf } from '@berth/protocol/calls/define.ts';
import { sleepVm } from '@berth/protocol/calls/vms.ts';
import { destroySandbox, listSandboxes } from '../world/client.ts';
import { usageIntervals } from '../world/database.ts';
import { leftoversOf, processesOfVm, vmsWithSlots } from '../world/leftovers.ts';
import type { Parts } from '../world/parts.ts';
import type { AgentLife } from './agents/agent-life.ts';
import { checkAgents } from './agents/rest.ts';
import type { ClientLife } from './sandboxes/client-life.ts';
import type { ChaosClient } from './judging/client.ts';
import type { KnownSandbox } from './model/known-sandbox.ts';
import { checkLedger } from './model/ledger.ts';
import type { Report } from './judging/report.ts';
import type { FaultLog } from './judging/faults.ts';

/** For all sandboxes together: the longest call of a host runs out, and its retry succeeds. */
const SETTLE_DEADLINE_MS = deadlineOf(sleepVm, 'host') + 60_000;
/** The log of a sandbox that takes longer is shown. */
const SLOW_MS = 60_000;
/** The service itself ends unclaimed VMs, within seconds. */
const CLEARED_DEADLINE_MS = 60_000;
const POLL_MS = 250;

interface QuiescentWorld {
  parts: Parts;
  clients: readonly ClientLife[];
  agents: readonly AgentLife[];
  client: ChaosClient;
  hasVms: boolean;
  faults: FaultLog;
  report: Report;
}

export async function compareWhenQuiescent(world: QuiescentWorld): Promise<void> {
  const { parts, clients, report } = world;
  report.say('everything runs; waiting until every sandbox is at rest');
  const settledBy = Date.now() + SETTLE_DEADLINE_MS;
  for (const client of clients)
    for (const sandbox of client.sandboxes) await settle(client, sandbox, settledBy, report);
  report.say('waking what sleeps, and reading everything back');
  for (const client of clients) {
    for (const sandbox of client.sandboxes.filter((candidate) => !candidate.gone))
      await checkGuest(client, sandbox, world);
  }

  report.say('bringing every agent session to rest');
  for (const agent of world.agents) await checkAgents(agent, world);

  await compareLists(world);
  if (world.hasVms) await compareVms(world);
  await compareLedger(world);

  report.say('destroying everything');
  for (const client of clients)
    for (const sandbox of client.sandboxes.filter(({ gone }) => !gone)) await client.verb(sandbox, 'destroy');
  for (const { id } of await listSandboxes(parts.caller)) await destroySandbox(parts.caller, id);
  const left = await settledLeftovers(parts.dataFolder);
  for (const what of left) report.found('leaked', what);
  for (const client of clients) {
    for (const sandbox of client.sandboxes) {
      await client.get(sandbox);
      if (sandbox.status !== 'deleted')
        report.found('contradiction', `${sandbox.id} is ${sandbox.status} after it was destroyed`);
    }
  }
  await compareLedger(world);
}

async function settle(client: ClientLife, sandbox: KnownSandbox, deadline: number, report: Report): Promise<void> {
  const startedMs = Date.now();
  for (;;) {
    await client.get(sandbox);
    if (SANDBOX_STATES[sandbox.status].settled) {
      const tookMs = Date.now() - startedMs;
      if (tookMs > SLOW_MS)
        report.slow(`${sandbox.id} was ${sandbox.status} only after ${Math.round(tookMs / 1_000)} s`);
      return;
    }
    if (Date.now() > deadline) {
      report.found('contradiction', `${sandbox.id} is still ${sandbox.status} after a long rest`);
      return;
    }
    await delay(POLL_MS);
  }
}

/** Wakes the sandbox if possible, and compares its content with the model. */
async function checkGuest(
  client: ClientLife,
  sandbox: KnownSandbox,
  { report, hasVms }: QuiescentWorld,
): Promise<void> {
  if (sandbox.status === 'stopped' || (sandbox.status === 'failed' && sandbox.view.wakesFrom !== null)) {
    await client.verb(sandbox, 'wake');
    await settle(client, sandbox, Date.now() + SETTLE_DEADLINE_MS, report);
  }
  if (sandbox.is('awake') && hasVms) await client.read(sandbox);
  if (sandbox.gone || sandbox.is('awake')) return;
  const files = [...sandbox.files.values()].filter(({ sure }) => sure).length;
  if (files > 0 && sandbox.ttlSeconds === null)
    report.found('file-lost', `${sandbox.id} cannot be woken (${sandbox.status}), with ${files} files`);
  else report.note(`at rest ${sandbox.status}, with nothing in it: ${sandbox.view.statusReason?.code ?? 'no reason'}`);
}

/** The service lists exactly the sandboxes that were acknowledged and not ended. */
async function compareLists({ parts, clients, report }: QuiescentWorld): Promise<void> {
  const listed = await listSandboxes(parts.caller);
  const known = new Map(clients.flatMap(({ sandboxes }) => sandboxes.map((sandbox) => [sandbox.id, sandbox])));
  const unanswered = new Set(clients.flatMap(({ unansweredKeys }) => unansweredKeys));
  for (const view of listed) {
    if (!known.has(view.id) && !unanswered.has(view.name))
      report.found('contradiction', `${view.id} (${view.name}) is listed, and no create was told of it`);
  }
  for (const sandbox of known.values()) {
    if (!sandbox.maybeGone && !listed.some(({ id }) => id === sandbox.id))
      report.found('sandbox-lost', `${sandbox.id} is not listed, it was ${sandbox.status}`);
  }
}

/** Exactly the awake sandboxes have one VM each; all that are not gone have a host folder. */
async function compareVms({ parts, clients, report }: QuiescentWorld): Promise<void> {
  const awake = new Set(
    (await listSandboxes(parts.caller)).filter(({ status }) => SANDBOX_STATES[status].awake).map(({ id }) => id),
  );
  const deadline = Date.now() + CLEARED_DEADLINE_MS;
  let strays: string[] = [];
  do {
    strays = (await vmsWithSlots(parts.dataFolder)).filter((id) => !awake.has(id));
    if (strays.length > 0) await delay(POLL_MS);
  } while (strays.length > 0 && Date.now() < deadline);
  for (const id of strays) report.found('leaked', `the machine of ${id}, which is not awake`);
  for (const id of awake) {
    const processes = (await processesOfVm(id)).length;
    if (processes !== 1)
      report.found(processes === 0 ? 'sandbox-lost' : 'leaked', `${id} is awake with ${processes} QEMU processes`);
  }
  const folders = await readdir(join(parts.dataFolder, 'host', 'vms'));
  const kept = new Set(clients.flatMap(({ sandboxes }) => sandboxes.filter(({ gone }) => !gone).map(({ id }) => id)));
  for (const id of folders.filter((name) => !kept.has(name)))
    if (!awake.has(id)) report.found('leaked', `the folder of ${id}`);

  for (const id of folders.filter((name) => awake.has(name))) {
    if ((await readdir(join(parts.dataFolder, 'host', 'vms', id))).includes('snapshot'))
      report.found('leaked', `the snapshot of ${id}, which is awake`);
  }
}

async function compareLedger({ parts, clients, faults, report }: QuiescentWorld): Promise<void> {
  const nowMs = Date.now();
  const intervals = await usageIntervals(parts.dataFolder);
  const readMs = Date.now();
  const known = new Set<string>();
  for (const sandbox of clients.flatMap(({ sandboxes }) => sandboxes)) {
    known.add(sandbox.id);
    const deaths = faults
      .startedBetween('qemu-killed', 0, nowMs, sandbox.id)
      .map(({ fromMs }) => ({ atMs: fromMs, lastWatchedMs: faults.lastFreeOf('host', fromMs) }));
    // An ephemeral sandbox may have ended since its last view.
    const seenAwake = SANDBOX_STATES[sandbox.status].awake;
    const awake = seenAwake && sandbox.expiresAtMs <= readMs ? null : seenAwake;
    for (const { finding, what } of checkLedger(
      { id: sandbox.id, facts: sandbox.facts, deaths, awake },
      intervals,
      nowMs,
    )) {
      // The ledger is checked twice.
      if (!report.findings.some((entry) => entry.what === what)) report.found(finding, what);
    }
  }
  for (const { sandboxId, toMs } of intervals) {
    if (!known.has(sandboxId) && toMs === null)
      report.found('interval-unclosed', `of ${sandboxId}, which nobody was told of`);
  }
}

async function settledLeftovers(dataFolder: string): Promise<string[]> {
  const deadline = Date.now() + CLEARED_DEADLINE_MS;
  let left: string[];
  while ((left = await leftoversOf(dataFolder, { idle: false })).length > 0 && Date.now() < deadline)
    await delay(POLL_MS);
  return left;
}
