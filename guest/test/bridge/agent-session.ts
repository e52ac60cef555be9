// A driver of a real agent in a home of its own, and the events that it reported.
import { spawn, type ChildProcess } from 'node:child_process';
import { chown, mkdtemp, readFile, rm, writeFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { untilTrue } from '../../../os/test/until.ts';
import { startClaude } from '../../src/bridge/claude/driver.ts';
import { startCodex } from '../../src/bridge/codex/driver.ts';
import type { AgentDriver, AgentPrompt, Decision } from '../../src/bridge/driver.ts';
import { realAgent, type RealAgent } from './real-agents.ts';

/** `nobody`: the agents refuse some modes as root. */
const USER = 65_534;
const IS_ROOT = process.getuid?.() === 0;

interface OpenPrompt extends AgentPrompt {
  answer(decision: Decision): void;
  isWithdrawn: boolean;
}

interface StartOptions {
  gatewayUrl: string | null;
  savedId?: string | null;
  /** Accepts every approval, as a session that never asks. */
  accepts?: boolean;
  /** Without it, the program of the image's list. */
  program?: string;
}

const own = (path: string): Promise<void> => (IS_ROOT ? chown(path, USER, USER) : Promise.resolve());

export class AgentHome {
  readonly agent: RealAgent;
  readonly folder: string;
  readonly work: string;
  readonly #drivers: AgentDriver[] = [];

  private constructor(agent: RealAgent, folder: string) {
    this.agent = agent;
    this.folder = folder;
    this.work = join(folder, 'work');
  }

  static async create(agent: RealAgent): Promise<AgentHome> {
    // Codex refuses helpers below /tmp.
    const home = new AgentHome(agent, await mkdtemp(`/var/tmp/berth-${agent}-`));
    await mkdir(home.work);
    for (const path of [home.folder, home.work]) await own(path);
    return home;
  }

  async start({ gatewayUrl, savedId, accepts = false, program }: StartOptions): Promise<AgentSession> {
    const session = new AgentSession(this);
    const installed = await realAgent(this.agent);
    const listed = program === undefined ? installed : { ...installed, paths: { [this.agent]: program } };
    const startDriver = this.agent === 'codex' ? startCodex : startClaude;
    session.driver = await startDriver({
      ...{ savedId: savedId ?? null, gatewayUrl, folder: this.work, program: listed },
      ...{ spawn: (program, args, env) => this.spawn(program, args, env), signal: AbortSignal.timeout(60_000) },
      events: {
        reply: (text) => void session.replies.push(text),
        sign: () => void (session.signs += 1),
        exited: (message) => void session.exits.push(message),
        ask: (prompt, answer) => {
          if (accepts) {
            queueMicrotask(() => answer('accept'));
            return () => undefined;
          }
          const open: OpenPrompt = { ...prompt, answer, isWithdrawn: false };
          session.prompts.push(open);
          return () => void (open.isWithdrawn = true);
        },
      },
    });
    this.#drivers.push(session.driver);
    return session;
  }

  /** Content of a file in the working directory; empty if there is none. */
  async read(name: string): Promise<string> {
    return readFile(join(this.work, name), 'utf8').catch(() => '');
  }

  async write(name: string, text: string): Promise<void> {
    const path = join(this.folder, name);
    await mkdir(dirname(path), { recursive: true });
    await own(dirname(path));
    await writeFile(path, text);
    await own(path);
  }

  async remove(): Promise<void> {
    await Promise.all(this.#drivers.map((driver) => driver.close()));
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Starts a program as the user of the home. */
  spawn(program: string, args: readonly string[], env: Readonly<Record<string, string>>): ChildProcess {
    const drop = ['setpriv', '--reuid', `${USER}`, '--regid', `${USER}`, '--clear-groups', '--no-new-privs'];
    const [file = '', ...rest] = [...(IS_ROOT ? drop : []), program, ...args];
    return spawn(file, rest, {
      cwd: this.work,
      env: { PATH: process.env['PATH'] ?? '', HOME: this.folder, SHELL: '/bin/bash', ...env },
      stdio: 'pipe',
    });
  }
}

export class AgentSession {
  readonly home: AgentHome;
  readonly replies: string[] = [];
  readonly prompts: OpenPrompt[] = [];
  readonly exits: string[] = [];
  signs = 0;
  driver!: AgentDriver;

  constructor(home: AgentHome) {
    this.home = home;
  }

  /** Sends a script; its turn's end. */
  run(...lines: string[]): ReturnType<AgentDriver['run']> {
    return this.driver.run('trn_test', lines.join('\n'));
  }

  /** The next approval, once it is asked for. */
  async prompt(count = 1): Promise<OpenPrompt> {
    await untilTrue('an approval', () => this.prompts.length >= count);
    const prompt = this.prompts[count - 1];
    if (prompt === undefined) throw new Error('no approval');
    return prompt;
  }
}
