// Calls about the model keys of a project, with every kind of credential: only a sign-in may use
// them, and no response contains a key.
import type { FuzzKind, FuzzRequest, Turn } from '../core/kind.ts';
import { escaped, oddText } from '../core/odd-values.ts';
import { credential } from './sessions.ts';

/** Begins every key that the run stores. */
const KEY_MARK = 'sk-fuzz-';

export const agentCredentials: FuzzKind = {
  name: 'agent-credentials',
  weight: 8,
  run: async (turn) => {
    const answer = await turn.send({ ...credentialsRequest(turn), headers: credential(turn) });
    if (JSON.stringify(answer?.body ?? null).includes(KEY_MARK))
      turn.wrong(`${turn.name}: a response contains a model key`);
  },
};

function credentialsRequest({ random, world, name }: Turn): FuzzRequest {
  const { orgId, projectId } = world.caller;
  const agent = random.pick(['agent_one', 'agent_one', 'agent_two', 'agent_three', 'x'.repeat(300), '%00']);
  const project = random.chance(0.9) ? projectId : random.pick(['prj_x', `prj_${'a'.repeat(24)}`, '%2e%2e']);
  const target = `/v1/orgs/${orgId}/projects/${project}/agent-credentials/${agent}`;
  switch (random.weighted({ get: 5, put: 8, delete: 3 })) {
    case 'get':
      return { method: 'GET', target };
    case 'delete':
      return { method: 'DELETE', target };
    default: {
      const apiKey = random.pick<unknown>([
        `${KEY_MARK}${name}`,
        ...[`${KEY_MARK}${'k'.repeat(2_000)}`, '', ' ', null, 0, {}],
        oddText(random, 20),
      ]);
      const endpoint = random.pick<unknown>([
        undefined,
        ...[undefined, 'https://api.openai.com', 'https://api.anthropic.com/'],
        ...['http://127.0.0.1:1', 'file:///etc/passwd', '', 'x'.repeat(501), escaped(random, 'http://é'), 7],
      ]);
      return { method: 'PUT', target, body: JSON.stringify({ apiKey, endpoint }) };
    }
  }
}
