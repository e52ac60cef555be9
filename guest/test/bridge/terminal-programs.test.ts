// The real agents' own programs in their terminals, with scripted models.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { text } from 'node:stream/consumers';
import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import { untilTrue } from '../../../os/test/until.ts';
import { ModelServer } from '../../../e2e/model-servers/server.ts';
import type { DriverStart, ReadyAgent } from '../../src/bridge/driver.ts';
import { TERMINAL_PROGRAMS } from '../../src/bridge/terminal/programs.ts';
import { startTerminal } from '../../src/bridge/terminal/terminal.ts';
import { AgentHome } from './agent-session.ts';
import { realAgent } from './real-agents.ts';

let models: ModelServer;
before(async () => {
  models = await ModelServer.start();
});
after(() => models.close());

/** An agent's program, with a person at its keys. */
class Program {
  readonly exits: string[] = [];
  readonly #id = randomUUID();
  readonly #home: AgentHome;
  #agent: ReadyAgent | null = null;

  constructor(home: AgentHome) {
    this.#home = home;
  }

  async start(kind: string): Promise<void> {
    const home = this.#home;
    const start: DriverStart = {
      ...{ savedId: null, gatewayUrl: models.url, folder: home.work, program: await realAgent(home.agent) },
      ...{ spawn: (program, args, env) => home.spawn(program, args, env), signal: AbortSignal.timeout(60_000) },
      events: {
        reply: () => assert.fail('a terminal has no replies'),
        ask: () => assert.fail('a terminal asks its user'),
        sign: () => undefined,
        exited: (message) => void this.exits.push(message),
      },
    };
    this.#agent = await startTerminal(start, this.#id, (TERMINAL_PROGRAMS[kind] ?? assert.fail())(start));
  }

  async tmux(...args: readonly string[]): Promise<string> {
    const child = this.#home.spawn('/usr/bin/tmux', ['-L', `berth-${this.#id}`, ...args], {});
    return await text(child.stdout as Readable);
  }

  async shows(words: string): Promise<void> {
    await untilTrue(`the screen shows ${words}`, async () =>
      (await this.tmux('capture-pane', '-p', '-t', 'agent')).includes(words),
    );
  }

  async type(words: string): Promise<void> {
    await this.tmux('send-keys', '-t', 'agent', '-l', words);
    await this.shows(words);
    await this.tmux('send-keys', '-t', 'agent', 'Enter');
  }

  close(): Promise<void> | undefined {
    return this.#agent?.close();
  }
}

for (const [kind, agent, ready] of [['agent_two', 'claude', 'for shortcuts']] as const) {
  // The pinned packages are those of x86-64.
  test(
    `${agent} talks to its user and its model, and ends with its terminal`,
    { skip: process.arch !== 'x64' },
    async () => {
      const home = await AgentHome.create(agent);
      const program = new Program(home);
      try {
        const trusted = { hasCompletedOnboarding: true, projects: { [home.work]: { hasTrustDialogAccepted: true } } };
        if (agent === 'claude') await home.write('.claude.json', JSON.stringify(trusted));
        await program.start(kind);
        await program.shows(ready);
        await program.type('@say the model replied');
        await untilTrue('the model is called', () => models.callsFor('the model replied') > 0);
        await untilTrue(
          'the reply is shown',
          async () => (await program.tmux('capture-pane', '-p', '-t', 'agent')).split('the model replied').length > 2,
        );
        assert.deepEqual(program.exits, []);
        await program.close();
        assert.equal(await program.tmux('list-sessions'), '');
        assert.deepEqual(program.exits, []);
      } finally {
        await program.close();
        await home.remove();
      }
    },
  );
}
