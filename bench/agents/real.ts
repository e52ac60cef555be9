// Figures of the image's real agents in a VM, with a scripted model: a create beside the start of
// the program by hand in the same VM, in turns; the way of a message to the model; memory.
import { setTimeout as delay } from 'node:timers/promises';
import { ModelServer } from '../../e2e/model-servers/server.ts';
import { ownerSession } from '../../e2e/world/owner-session.ts';
import { claudeArguments, claudeEnvironment } from '../../guest/src/bridge/claude/program.ts';
import { codexArguments, CODEX_ENVIRONMENT } from '../../guest/src/bridge/codex/program.ts';
import type { Progress } from '@berth/machine/output/progress.ts';
import { snapshotMib } from '../lifecycle/sleep-wake.ts';
import { JsonCaller } from '../world/client.ts';
import { timed, withWorld, type BenchWorld } from '../world/installation.ts';
import { figureOf, type Figure } from '../world/statistics.ts';
import { bridgePattern, guestMemoryMib } from './guest-memory.ts';

/** An address that nobody serves: a handshake calls no model. */
const NO_GATEWAY = 'http://127.0.0.1:9';

const AGENTS = {
  codex: {
    agent: 'agent_one',
    program: '/opt/berth/agents/codex/bin/codex',
    args: codexArguments(NO_GATEWAY),
    env: CODEX_ENVIRONMENT as Readonly<Record<string, string>>,
    hello: [
      { id: 1, method: 'initialize', params: { clientInfo: { name: 'berth', title: 'Berth', version: '0' } } },
      { method: 'initialized' },
      { id: 2, method: 'thread/start', params: { cwd: '/code', approvalPolicy: 'untrusted' } },
    ],
    response: '"id":2',
  },
  claude: {
    agent: 'agent_two',
    program: '/opt/berth/agents/claude/claude',
    args: claudeArguments({ id: '00000000-0000-4000-8000-000000000000', isNew: true }),
    env: claudeEnvironment(NO_GATEWAY),
    hello: [{ type: 'control_request', request_id: 'hello', request: { subtype: 'initialize' } }],
    response: 'control_response',
  },
} as const;
type AgentName = keyof typeof AGENTS;

interface RealFigures {
  createMs: Figure;
  byHandMs: Figure;
  /** From the message to its call at the model server. */
  startedMs: Figure;
  bridgeMib: number;
  agentMib: number;
  snapshotGrowthMib: number;
}

export async function measureRealAgents(progress: Progress, rounds: number): Promise<Record<AgentName, RealFigures>> {
  const models = await ModelServer.start();
  const endpoints = `openai=${models.url},anthropic=${models.url}`;
  const environment = { BERTH_MODEL_ENDPOINTS: endpoints, BERTH_POOL_MIN: '0', BERTH_POOL_MAX: '0' };
  try {
    return await withWorld(progress, environment, async (world) => {
      const url = new URL(world.url);
      const token = await ownerSession(world);
      const owner = new JsonCaller({ address: url.hostname, port: Number(url.port), token });
      const figures = {} as Record<AgentName, RealFigures>;
      for (const name of Object.keys(AGENTS) as AgentName[]) {
        const { id, projectId, orgId } = await createSandbox(world, name);
        const path = `/v1/orgs/${orgId}/projects/${projectId}/agent-credentials/${AGENTS[name].agent}`;
        await owner.call('PUT', path, { apiKey: 'sk-bench' });
        figures[name] = await progress.step(`${rounds} rounds of ${name}`, () =>
          measureAgent(world, { name, id, models, rounds }),
        );
        await world.client.destroy(id);
      }
      owner.close();
      return figures;
    });
  } finally {
    await models.close();
  }
}

interface Subject {
  name: AgentName;
  id: string;
  models: ModelServer;
  rounds: number;
}

async function measureAgent({ client, dataFolder }: BenchWorld, subject: Subject): Promise<RealFigures> {
  const { name, id, models, rounds } = subject;
  await client.exec(id, 'uname -a');
  const before = await sleepAndWake();
  const ms = { create: [] as number[], byHand: [] as number[], started: [] as number[] };
  // The first start reads the program from the disk.
  await client.exec(id, startByHand(name));
  let sessionId = '';
  for (let round = 0; round < rounds; round += 1) {
    ms.byHand.push(await timed(() => client.exec(id, startByHand(name))));
    const created = async (): Promise<void> => {
      ({ id: sessionId } = (await client.call('POST', `/v1/sandboxes/${id}/agent-sessions`)) as { id: string });
    };
    ms.create.push(await timed(created));
    const path = `/v1/agent-sessions/${sessionId}`;
    const prompt = `round-${name}-${round}.`;
    const text = `${prompt}\n@say yes`;
    ms.started.push(
      await timed(async () => {
        const sent = client.call('POST', `${path}/messages`, { text });
        while (models.callsFor(prompt) === 0) await delay(5);
        await sent;
      }),
    );
    await ended(path);
    // Frees its memory and CPU for the next round; the last one stays.
    if (round + 1 < rounds) await client.exec(id, `sudo -n pkill -9 -f '${bridgePattern(sessionId)}' && echo ended`);
  }
  const program = `^${AGENTS[name].program.slice(0, AGENTS[name].program.lastIndexOf('/'))}`;
  const bridgeMib = await guestMemoryMib(client, id, bridgePattern(sessionId));
  const agentMib = await guestMemoryMib(client, id, program);
  const snapshotGrowthMib = (await sleepAndWake()) - before;
  return {
    ...{ createMs: figureOf(ms.create), byHandMs: figureOf(ms.byHand), startedMs: figureOf(ms.started) },
    ...{ bridgeMib, agentMib, snapshotGrowthMib },
  };

  async function ended(path: string): Promise<void> {
    for (;;) {
      const { turnState } = (await client.call('GET', path)) as { turnState: string };
      if (turnState === 'completed') return;
      if (turnState === 'failed') throw new Error(`a turn of ${name} failed`);
      await delay(50);
    }
  }

  /** Size of a snapshot in MiB. */
  async function sleepAndWake(): Promise<number> {
    await client.sleep(id);
    const size = await snapshotMib(dataFolder, id);
    await client.wake(id);
    return size;
  }
}

/** A command that starts the program until it would take a message, and ends it. */
function startByHand(name: AgentName): string {
  const { program, args, env, hello, response } = AGENTS[name];
  const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
  const variables = Object.entries(env).map(([key, value]) => quoted(`${key}=${value}`));
  return [
    'f=$(mktemp -d); mkfifo $f/in',
    `env ${[...variables, program, ...args.map(quoted)].join(' ')} <$f/in >$f/out 2>/dev/null & p=$!`,
    `exec 3>$f/in; echo ${quoted(hello.map((line) => JSON.stringify(line)).join('\n'))} >&3`,
    `until grep -q ${quoted(response)} $f/out; do kill -0 $p || exit 1; sleep 0.1; done`,
    'kill -9 $p; rm -r $f; echo ready',
  ].join('\n');
}

async function createSandbox(
  { client }: BenchWorld,
  name: AgentName,
): Promise<Record<'id' | 'orgId' | 'projectId', string>> {
  const id = await client.createAwake({ agent: AGENTS[name].agent, machineSize: 'medium' });
  const { sandbox } = (await client.call('GET', `/v1/sandboxes/${id}`)) as {
    sandbox: { orgId: string; projectId: string };
  };
  return { id, ...sandbox };
}
