// Arguments and environment of Codex' app-server, and of its terminal program.

/** Features that start turns by themselves, load code from the network, or outlive the agent. */
const DISABLED = [
  ...['plugins', 'remote_plugin', 'apps', 'skill_mcp_dependency_install', 'in_app_updates', 'daemon_auto_start'],
  ...['goals', 'multi_agent', 'multi_agent_v2', 'memories'],
];

/** Mode in which a person approves each command. */
export const CODEX_ASKS = { approvalPolicy: 'untrusted', approvalsReviewer: 'user' } as const;
/** The VM is the sandbox. */
export const CODEX_SANDBOX = 'danger-full-access';

export function codexArguments(gatewayUrl: string | null): string[] {
  return ['app-server', ...codexTerminalArguments(gatewayUrl)];
}

/** Arguments of Codex' terminal program. */
export function codexTerminalArguments(gatewayUrl: string | null): string[] {
  return [
    ...DISABLED.flatMap((feature) => ['--disable', feature]),
    ...configOf({ check_for_update_on_startup: 'false', 'analytics.enabled': 'false', 'otel.exporter': '"none"' }),
    ...(gatewayUrl === null ? [] : configOf(gatewayProvider(gatewayUrl))),
  ];
}

/** The gateway adds the key; the agent sends a value that means nothing. */
export const CODEX_ENVIRONMENT = { BERTH_MODEL_TOKEN: 'berth' } as const;

function gatewayProvider(gatewayUrl: string): Record<string, string> {
  const base = JSON.stringify(`${gatewayUrl}/v1`);
  const flags = 'wire_api = "responses", requires_openai_auth = false, supports_websockets = false';
  return {
    model_provider: '"berth"',
    'model_providers.berth': `{ name = "Berth", base_url = ${base}, env_key = "BERTH_MODEL_TOKEN", ${flags} }`,
  };
}

const configOf = (values: Readonly<Record<string, string>>): string[] =>
  Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
