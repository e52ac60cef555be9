// Executes a fuzzer run from its seed: installation, sandboxes, clients and clean-up.
import { Random } from '../world/random.ts';
import { awakeSandbox, destroySandbox, listSandboxes, sleepSandbox } from '../world/client.ts';
import { Parts } from '../world/parts.ts';
import { agentTokenOf } from '../world/agent-token.ts';
import { ownerSession } from '../world/owner-session.ts';
import { startSession } from './agents/sessions.ts';
import { FuzzClient } from './core/client.ts';
import type { FuzzKind, FuzzWorld, Turn } from './core/kind.ts';
import { checkReceived, createEndpoints, secretsOf } from './previews/endpoints.ts';
import { FuzzReport } from './core/report.ts';
import { PreviewClient } from './previews/client.ts';

interface FuzzOptions {
  seed: string;
  /** Minimum; related requests are sent to their end. */
  requests: number;
  clients: number;
  kinds: readonly FuzzKind[];
  /** `fake` has everything but VMs. */
  driver: 'qemu' | 'fake';
  say: (line: string) => void;
  /** Ends the run early, in order. */
  signal: AbortSignal;
}

const PROGRESS_MS = 10_000;
/** An id that nothing has. */
const UNKNOWN_SANDBOX_ID = `sbx_${'a'.repeat(24)}`;

/** Runs and resolves with the report; everything the run made is removed by then. */
export async function runFuzz(options: FuzzOptions): Promise<FuzzReport> {
  const report = new FuzzReport(options.say);
  report.say('starting an installation of its own');
  const parts = await Parts.start({ driver: options.driver, environment: { BERTH_SCRIPTED_AGENT: '1' } });
  try {
    await sendAll(options, parts, report);
    for (const { id } of await listSandboxes(parts.caller)) await destroySandbox(parts.caller, id);
  } finally {
    for (const what of await parts.close()) report.found('wrong', `after the end: ${what}`);
  }
  return report;
}

async function sendAll(options: FuzzOptions, parts: Parts, report: FuzzReport): Promise<void> {
  const { caller } = parts;
  const made = await Promise.all(Array.from({ length: 4 }, () => awakeSandbox(caller)));
  const [first, second, stopped, deleted] = made.map(({ id }) => id) as [string, string, string, string];
  const previews = await createEndpoints(caller, { awake: first, stopped, deleted }, options.seed);
  await Promise.all([sleepSandbox(caller, stopped), destroySandbox(caller, deleted)]);
  const session = await ownerSession(parts);
  const owner = { ...caller, token: session };
  const tokens = {
    ...{ apiKey: caller.token, session },
    agentToken: await agentTokenOf(owner),
    readOnlyToken: await agentTokenOf(owner, 'read_only'),
  };
  const sessions = await Promise.all([first, first, second, second].map((id) => startSession(caller, id)));
  const away = [stopped, deleted, UNKNOWN_SANDBOX_ID];
  const world: FuzzWorld = { caller, awake: [first, second], away, previews, sessions, tokens };
  const fuzzClient = new FuzzClient(caller, report);
  const previewClient = new PreviewClient(
    caller.url,
    { marker: previews.marker, secrets: secretsOf(previews) },
    report,
  );
  const random = new Random(options.seed);
  const progress = setInterval(
    () => report.say(`${report.requests} requests, ${report.findings.length} findings`),
    PROGRESS_MS,
  );
  const weights = Object.fromEntries(options.kinds.map(({ name, weight }) => [name, weight]));
  const client = async (name: string): Promise<void> => {
    for (let number = 1; report.requests < options.requests && !options.signal.aborted; number += 1) {
      const turnName = `${name}.${number}`;
      const ofTurn = random.fork(turnName);
      const kindName = ofTurn.weighted(weights);
      const turn: Turn = {
        name: turnName,
        random: ofTurn,
        world,
        send: async (request) => await fuzzClient.send(turnName, request),
        sendPreview: async (request) => await previewClient.sendPreview(turnName, request),
        wrong: (what) => report.found('wrong', what),
      };
      await options.kinds.find((kind) => kind.name === kindName)?.run(turn);
    }
  };
  try {
    await Promise.all(Array.from({ length: options.clients }, (_, index) => client(`c${index + 1}`)));
    await checkReceived(caller, previews, report);
  } finally {
    clearInterval(progress);
  }
}
