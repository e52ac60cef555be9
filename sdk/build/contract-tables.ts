// What the SDK knows of the contract besides the shapes of requests and answers, as the text of a
// module: numbers for its own waiting, and the rules by which the server of `@berth/sdk/testing`
// answers. The contract itself needs zod, and the SDK has no dependencies.
import { ERRORS } from '@berth/contract/route/errors.ts';
import {
  EXEC_LIMITS,
  FILE_LIMITS,
  IDEMPOTENCY_KEY,
  METADATA_LIMITS,
  REQUESTS_PER_MINUTE,
} from '@berth/contract/route/limits.ts';
import { MACHINE_SIZES, PROFILE_SIZES, SIZE_PROFILES } from '@berth/contract/sandboxes/machine-sizes.ts';
import { fullDocument } from '@berth/contract/document/openapi.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { REFUSAL_CODES, SANDBOX_ACTION_RULES, SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import { reachable } from './raw-document.ts';

interface Operation {
  parameters?: { name: string; in: string; required: boolean; schema: unknown }[];
  requestBody?: { required: boolean; content: { 'application/json': { schema: unknown } } };
}

export function contractTables(): string {
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
      },
      query: (operation.parameters ?? [])
        .filter((one) => one.in === 'query')
        .map(({ name, required, schema }) => ({ name, required, schema })),
      body:
        operation.requestBody === undefined
          ? null
          : {
              required: operation.requestBody.required,
              schema: operation.requestBody.content['application/json'].schema,
            },
    };
  });
  const used = reachable(routes, components.schemas);
  const schemas = Object.fromEntries(Object.entries(components.schemas).filter(([name]) => used.has(name)));
  const tables = {
    ERRORS,
    EXEC_LIMITS,
    FILE_LIMITS,
    IDEMPOTENCY_KEY,
    METADATA_LIMITS,
    REQUESTS_PER_MINUTE,
    MACHINE_SIZES,
    PROFILE_SIZES,
    SIZE_PROFILES,
    SANDBOX_STATES,
    SANDBOX_ACTION_RULES,
    REFUSAL_CODES,
    ROUTES: routes,
    SCHEMAS: schemas,
  };
  const lines = Object.entries(tables).map(
    ([name, value]) => `export const ${name} = ${JSON.stringify(value, null, 2)} as const;\n`,
  );
  return `// Written by npm run sdk:generate from contract/. Do not edit.\n\n${lines.join('\n')}`;
}
