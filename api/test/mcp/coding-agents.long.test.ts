// Claude Code and Codex as MCP clients, configured as docs/mcp.md says: the real programs with
// scripted models drive a session of the scripted agent through real processes.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ModelServer } from '../../../e2e/model-servers/server.ts';
import { claudeEnvironment } from '../../../guest/src/bridge/claude/program.ts';
import { CODEX_ENVIRONMENT, codexArguments } from '../../../guest/src/bridge/codex/program.ts';
import { realAgent, type RealAgent } from '../../../guest/test/bridge/real-agents.ts';
import { FakeInstallation } from '../fake-installation.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { documented, paste, type Shell } from './documented.ts';

type Body = Record<string, unknown>;

interface Client {
  /** Configures the endpoint in the home of the shell. */
  configure(shell: Shell): Promise<void>;
  environment(modelUrl: string): Record<string, string>;
  /** Command that runs the prompt in the variable `PROMPT`, without a person. */
  command(modelUrl: string): string;
  /** Flags that allow every tool. */
  allow: string;
  /** The tool's result within the last words of the client. */
  resultOf(words: string): Body;
  /** Text that the model reads instead of the result of a tool that nobody allowed. */
  refusal: RegExp;
}

const quoted = (args: readonly string[]): string => args.map((arg) => `'${arg}'`).join(' ');

const CLIENTS: Readonly<Record<RealAgent, Client>> = {
  claude: {
    configure: async (shell) => void (await paste(await documented('Claude Code', 'sh'), shell)),
    environment: claudeEnvironment,
    command: () => 'claude -p "$PROMPT"',
    allow: '--allowedTools mcp__berth',
    resultOf: (words) => JSON.parse(words) as Body,
    refusal: /requested permissions to use mcp__berth__send_agent_message/,
  },
  codex: {
    configure: async ({ folder, environment }) => {
      const block = await documented('Codex', 'toml');
      assert.match(block, /^url = "https:\/\/berth\.example\.com\//m);
      await mkdir(join(folder, '.codex'));
      const url = environment['BERTH_URL'] ?? '';
      await writeFile(join(folder, '.codex/config.toml'), block.replace('https://berth.example.com', url));
    },
    environment: () => CODEX_ENVIRONMENT,
    command: (modelUrl) =>
      `codex exec --skip-git-repo-check --strict-config ${quoted(codexArguments(modelUrl).slice(1))} "$PROMPT"`,
    allow: `-c 'mcp_servers.berth.default_tools_approval_mode="approve"'`,
    resultOf: (words) => {
      const [, json = ''] = /^(\{"content":.*\})$/m.exec(words) ?? [];
      return (JSON.parse(json) as { structuredContent: Body }).structuredContent;
    },
    refusal: /requires approval, but approval policy is never/,
  },
};

let models: ModelServer;
let berth: FakeInstallation;
let sandboxId: string;
before(async () => {
  models = await ModelServer.start();
  berth = await FakeInstallation.start({ BERTH_SCRIPTED_AGENT: '1' });
  ({ id: sandboxId } = await berth.create({ projectId: await berth.makeProject({ name: 'mcp' }) }));
  await berth.until(sandboxId, ({ status }) => status === 'ready');
});
after(async () => {
  await berth?.stop();
  await models?.close();
});

for (const [agent, client] of Object.entries(CLIENTS) as [RealAgent, Client][]) {
  // The pinned packages are those of x86-64.
  describe(agent, { skip: process.arch !== 'x64' }, () => {
    let shell: Shell;
    before(async () => {
      const { paths } = await realAgent(agent);
      // Codex refuses helpers below /tmp.
      const folder = await mkdtemp(`/var/tmp/berth-mcp-${agent}-`);
      const environment = { ...client.environment(models.url), BERTH_URL: berth.url, BERTH_API_KEY: berth.token };
      shell = { folder, programs: [dirname(paths[agent] ?? '')], environment };
      await client.configure(shell);
    });
    after(() => rm(shell.folder, { recursive: true, force: true, maxRetries: 5 }));

    /** The client's last words after a prompt with the script. */
    const ask = (flags: string, ...script: string[]): Promise<string> =>
      paste(`${client.command(models.url)} ${flags}`, {
        ...shell,
        environment: { ...shell.environment, PROMPT: [`${agent} as a client`, ...script].join('\n') },
      });
    /** Calls tools; returns the result of the last. */
    const use = async (...calls: [tool: string, given: Body][]): Promise<Body> => {
      const script = calls.map(([tool, given]) => `@mcp berth ${tool} ${JSON.stringify(given)}`);
      const words = await ask(client.allow, ...script, '@result');
      try {
        return client.resultOf(words);
      } catch {
        throw new Error(`no result of ${script.at(-1)}: ${words}`);
      }
    };

    test('drives a session with all agent tools', async () => {
      const { id: session_id, bridgeState } = await use(['create_agent_session', { sandbox_id: sandboxId }]);
      assert.equal(bridgeState, 'ready');
      const session = (): Promise<Body> => berth.call('GET', `/v1/agent-sessions/${String(session_id)}`);
      const hasState = (state: string) => async (): Promise<boolean> => (await session())['turnState'] === state;

      const text = 'say hello\nask Deploy\nsay bye';
      const message = { session_id, text, request_key: `${agent}.message` };
      const { turnId } = await use(['send_agent_message', message]);
      assert.deepEqual((await use(['send_agent_message', message]))['turnId'], turnId);
      await untilTrue('an approval', async () => (await session())['needsYou'] === true);
      const waiting = await use(['get_agent_session', { session_id, detail: 'full' }]);
      const { requestId, title } = waiting['pendingInput'] as { requestId: number; title: string };
      assert.deepEqual([typeof requestId, title], ['number', 'Deploy']);
      const answered = await use(['answer_agent_prompt', { session_id, request_id: requestId, decision: 'decline' }]);
      assert.deepEqual([answered['requestId'], answered['decision']], [requestId, 'decline']);
      await untilTrue('the end of the turn', hasState('completed'));
      const { messages } = await use(['get_agent_output', { session_id }]);
      assert.deepEqual(
        (messages as { text: string }[]).map((reply) => reply.text),
        ['hello', 'decision decline', 'bye'],
      );

      const interrupted = await use(
        ['send_agent_message', { session_id, text: 'hang', request_key: `${agent}.hang` }],
        ['interrupt_agent_turn', { session_id }],
      );
      assert.notEqual(interrupted['turnId'], turnId);
      await untilTrue('the end of the turn', hasState('canceled'));
      const recovered = await use(['recover_agent_session', { session_id }]);
      assert.deepEqual([recovered['id'], recovered['bridgeState']], [session_id, 'ready']);
      const { sessions } = await use(['list_agent_sessions', { sandbox_id: sandboxId }]);
      assert.equal((sessions as { id: string }[])[0]?.id, session_id);
    });

    test('asks before a tool that changes something, and calls no model with the credential', async () => {
      const { id: session_id } = await use(['create_agent_session', { sandbox_id: sandboxId }]);
      const given = JSON.stringify({ session_id, text: 'say unasked' });
      assert.match(await ask('', `@mcp berth send_agent_message ${given}`, '@result'), client.refusal);
      const { turnId } = await berth.call('GET', `/v1/agent-sessions/${String(session_id)}`);
      assert.equal(turnId, null);
      assert.ok(models.calls.every(({ credential, prompt }) => !`${credential}${prompt}`.includes(berth.token)));
    });
  });
}

test('the documented command of Claude Code without a person runs', { skip: process.arch !== 'x64' }, async () => {
  const { paths } = await realAgent('claude');
  const folder = await mkdtemp('/var/tmp/berth-mcp-documented-');
  try {
    const environment = { ...claudeEnvironment(models.url), BERTH_URL: berth.url, BERTH_API_KEY: berth.token };
    const shell: Shell = { folder, programs: [dirname(paths['claude'] ?? '')], environment };
    await paste(await documented('Claude Code', 'sh'), shell);
    assert.equal((await paste(await documented('Claude Code', 'sh', 1), shell)).trim(), 'ok');
    const stored = await readFile(join(folder, '.claude.json'), 'utf8');
    assert.match(stored, /Bearer \$\{BERTH_API_KEY\}/);
    assert.ok(!stored.includes(berth.token), 'the configuration holds the name of the variable');
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
});
