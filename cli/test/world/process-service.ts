// A real service with a sandbox, whose processes do what a test says.
import assert from 'node:assert/strict';
import type { SandboxProcess } from '@berth/contract/commands/processes.ts';
import type { FakeProcess } from '../../../api/test/world/guests/process-guests.ts';
import { until } from '../../../os/test/until.ts';
import { startBerth, type Ended } from './berth.ts';
import { Service } from './service.ts';

interface StartedProcess {
  id: string;
  guest: FakeProcess;
}

export class ProcessService {
  readonly service: Service;
  readonly sandboxId: string;

  private constructor(service: Service, sandboxId: string) {
    this.service = service;
    this.sandboxId = sandboxId;
  }

  static async start(): Promise<ProcessService> {
    const service = await Service.start();
    return new ProcessService(service, await makeSandbox(service));
  }

  /** The service with another sandbox. */
  async withSandbox(): Promise<ProcessService> {
    return new ProcessService(this.service, await makeSandbox(this.service));
  }

  /** Starts a process with the API. */
  async process(body: object = {}): Promise<StartedProcess> {
    const path = `/v1/sandboxes/${this.sandboxId}/processes`;
    const answer = await this.service.api.call('POST', path, {
      body: 'argv' in body ? body : { command: 'serve', ...body },
    });
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    const { id } = (answer.body as { process: SandboxProcess }).process;
    return { id, guest: this.guest(id) };
  }

  guest(id: string): FakeProcess {
    const found = this.service.api.front.processes.of(this.sandboxId).get(id);
    assert.ok(found !== undefined, id);
    return found;
  }

  /** Runs a command on the sandbox: its id is inserted for `SBX`. */
  async run(args: readonly string[], stdin?: string | Buffer): Promise<Ended> {
    return await this.service.run(this.#words(args), stdin === undefined ? {} : { stdin });
  }

  begin(args: readonly string[]): ReturnType<typeof startBerth> {
    return startBerth(this.#words(args), { env: this.service.environment() });
  }

  terminal(args: readonly string[]): ReturnType<Service['terminal']> {
    return this.service.terminal(this.#words(args), { env: { NO_COLOR: '1' } });
  }

  async sleep(): Promise<void> {
    await this.#transition('sleep', 'stopped');
  }

  async wake(): Promise<void> {
    await this.#transition('wake', 'ready');
  }

  async #transition(verb: string, wanted: string): Promise<void> {
    const { status, body } = await this.service.api.call('POST', `/v1/sandboxes/${this.sandboxId}/${verb}`);
    assert.ok(status === 200 || status === 202, JSON.stringify(body));
    await settled(this.service, this.sandboxId, wanted);
  }

  #words(args: readonly string[]): string[] {
    return args.map((word) => (word === 'SBX' ? this.sandboxId : word));
  }
}

async function makeSandbox({ api }: Service): Promise<string> {
  const body = { agent: 'agent_one', projectId: api.projectId };
  const answer = await api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, { body });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const { id } = (answer.body as { sandbox: { id: string } }).sandbox;
  await settled({ api }, id, 'ready');
  return id;
}

async function settled({ api }: Pick<Service, 'api'>, id: string, wanted: string): Promise<void> {
  await until(`${id} is ${wanted}`, async () => {
    const { sandbox } = (await api.call('GET', `/v1/sandboxes/${id}`)).body as { sandbox: { status: string } };
    return sandbox.status === wanted ? true : null;
  });
}
