// Model endpoints that the operator lists. Callers choose among them only: another URL could make
// a host send requests into its own network.
import { AGENT_PROVIDERS, type ModelProvider } from '@berth/contract/agents/credentials.ts';
import { invalidField } from '../coded-error.ts';

/** Base URLs by provider, the default first. */
export type ModelEndpoints = Readonly<Record<ModelProvider, readonly string[]>>;

/** Parses `provider=URL,...`, whose form the configuration has checked. */
export function modelEndpointsOf(text: string): ModelEndpoints {
  const endpoints: Record<ModelProvider, string[]> = { openai: [], anthropic: [] };
  for (const entry of text.split(',').map((one) => one.trim())) {
    const at = entry.indexOf('=');
    endpoints[entry.slice(0, at) as ModelProvider].push(entry.slice(at + 1).replace(/\/$/, ''));
  }
  return endpoints;
}

/** The requested endpoint, or the default one. Throws `invalid_request`. */
export function requireModelEndpoint(
  endpoints: ModelEndpoints,
  agent: keyof typeof AGENT_PROVIDERS,
  requested: string | undefined,
): string {
  const provider = AGENT_PROVIDERS[agent];
  const listed = endpoints[provider];
  const [first] = listed;
  if (first === undefined) {
    throw invalidField(
      'params.agent',
      `must not be ${agent}: the operator lists no endpoint of ${provider} in BERTH_MODEL_ENDPOINTS`,
    );
  }
  const wanted = requested?.replace(/\/$/, '') ?? first;
  if (listed.includes(wanted)) return wanted;
  throw invalidField('body.endpoint', `must be one of ${listed.join(', ')}`);
}
