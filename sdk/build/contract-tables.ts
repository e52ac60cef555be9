// Generates modules with tables of the contract. The contract needs zod; the SDK has no
// dependencies.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { AGENT_LABELS } from '@berth/contract/agents/sessions.ts';
import { AGENT_OPERATIONS, TURN_STATES } from '@berth/contract/agents/state.ts';
import { COMMAND_OUTPUT, terminalInSandbox, terminalSignal } from '@berth/contract/connections/terminal.ts';
import { followProcessOutput } from '@berth/contract/commands/follow.ts';
import { tunnelToSandbox } from '@berth/contract/connections/tunnel.ts';
import {
  BEARER_SUBPROTOCOL,
  OUTCOME_SUBPROTOCOL,
  WEBSOCKET_CLOSE,
  WEBSOCKET_SUBPROTOCOL,
} from '@berth/contract/connections/websocket.ts';
import { PREVIEW_HEADERS } from '@berth/contract/previews/previews.ts';
import { ERRORS } from '@berth/contract/route/errors.ts';
import { REMEDIES } from '@berth/contract/route/remedies.ts';
import { ADMINISTRATION, permission, ROLE_PERMISSIONS } from '@berth/contract/route/permissions.ts';
import { MACHINE_SIZES, PROFILE_SIZES, SIZE_PROFILES } from '@berth/contract/sandboxes/machine-sizes.ts';
import { fullDocument } from '@berth/contract/document/openapi.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { REFUSAL_CODES, SANDBOX_ACTION_RULES, SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import { reachable } from './raw-document.ts';

const WRITTEN = '// Written by npm run sdk:generate from contract/. Do not edit.\n';

interface Operation {
  parameters?: { name: string; in: string; required: boolean; schema: unknown }[];
  requestBody?: { required: boolean; content: { 'application/json': { schema: unknown } } };
}

/** Contract modules without dependencies, copied unchanged. */
const COPIED = {
  'limits.ts': 'route/limits.ts',
  'command-limits.ts': 'route/command-options.ts',
  'ssh-key-line.ts': 'sandboxes/ssh-key-line.ts',
  'byte-range.ts': 'files/byte-range.ts',
};

/** Module texts by file name. */
export async function contractModules(): Promise<Record<string, string>> {
  const copies = Object.entries(COPIED).map(async ([name, path]) => {
    const text = await readFile(fileURLToPath(import.meta.resolve(`@berth/contract/${path}`)), 'utf8');
    return [name, `${WRITTEN}${text.replace("'../route/limits.ts'", "'./limits.ts'")}`] as const;
  });
  return {
    ...Object.fromEntries(await Promise.all(copies)),
    'contract-tables.ts': moduleOf({
      SANDBOX_STATES,
      SANDBOX_ACTION_RULES,
      MACHINE_SIZES,
      AGENT_LABELS,
      PERMISSIONS: permission.options,
      ADMINISTRATION,
      ROLE_PERMISSIONS: Object.fromEntries(
        Object.entries(ROLE_PERMISSIONS).map(([name, permissions]) => [name, [...permissions]]),
      ),
      WEBSOCKET_PATHS: {
        terminal: terminalInSandbox.path,
        tunnel: tunnelToSandbox.path,
        process: followProcessOutput.path,
      },
      WEBSOCKET_SUBPROTOCOL,
      BEARER_SUBPROTOCOL,
      OUTCOME_SUBPROTOCOL,
      WEBSOCKET_CLOSE,
      COMMAND_OUTPUT,
      PREVIEW_HEADERS,
      TERMINAL_SIGNALS: terminalSignal.options,
    }),
    'remedies.ts': moduleOf({ REMEDIES }),
    'service-tables.ts': serviceTables(),
  };
}

function moduleOf(tables: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(tables).map(
    ([name, value]) => `export const ${name} = ${JSON.stringify(value, null, 2)} as const;\n`,
  );
  return `${WRITTEN}\n${lines.join('\n')}`;
}

/** Rules for the server of `@berth/sdk/testing`. */
function serviceTables(): string {
  const { paths, components } = fullDocument();
  const routes = ROUTES.filter(({ websocket }) => websocket !== true).map((route) => {
    const operation = paths[route.path.replace(/^\/v1/, '')]?.[route.method.toLowerCase()] as Operation;
    const { name, method, path, auth, permission, activity, response } = route;
    return {
      ...{
        name,
        method,
        path,
        auth,
        permission,
        activity,
        status: response.status,
        idempotent: route.idempotent === true,
        upload: route.upload === true,
      },
      query: (operation.parameters ?? [])
        .filter((one) => one.in === 'query')
        .map(({ name, required, schema }) => ({ name, required, schema })),
      body:
        operation.requestBody === undefined || route.upload === true
          ? null
          : {
              required: operation.requestBody.required,
              schema: operation.requestBody.content['application/json'].schema,
            },
    };
  });
  const used = reachable(routes, components.schemas);
  const schemas = Object.fromEntries(Object.entries(components.schemas).filter(([name]) => used.has(name)));
  return moduleOf({
    ERRORS,
    PROFILE_SIZES,
    SIZE_PROFILES,
    REFUSAL_CODES,
    AGENT_OPERATIONS,
    TURN_STATES,
    ROUTES: routes,
    SCHEMAS: schemas,
  });
}
