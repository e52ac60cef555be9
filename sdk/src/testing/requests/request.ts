// Parses requests like the service: route, parameters and body, validated against the schemas.
import { ROUTES } from '../../generated/service-tables.ts';
import { Refusal } from './refusal.ts';
import { faultsIn, type Schema } from './schema.ts';

export type TestRoute = (typeof ROUTES)[number];
export type TestRouteName = TestRoute['name'];

/** A valid request. */
export interface TestCall {
  route: TestRoute;
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, unknown>>;
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any;
  headers: Headers;
}

/** Finds the route and its path parameters; throws for unknown paths and methods. */
export function findRoute(method: string, pathname: string): { route: TestRoute; params: Record<string, string> } {
  const fitting = ROUTES.flatMap((route) => {
    const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
    const found = new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, '([^/]+)')}$`).exec(pathname);
    return found === null
      ? []
      : [
          {
            route,
            params: Object.fromEntries(names.map((name, index) => [name, decodeURIComponent(found[index + 1] ?? '')])),
          },
        ];
  });
  const wanted = method === 'HEAD' ? 'GET' : method;
  const found = fitting.find(({ route }) => route.method === wanted);
  if (found !== undefined) return found;
  if (fitting.length === 0) throw new Refusal('route_not_found', `there is no path ${pathname}`);
  throw new Refusal('method_not_allowed', `${method} is not possible on ${pathname}`, {
    allow: fitting.map(({ route }) => route.method).join(', '),
  });
}

/** Parses query and body and fills in defaults; throws if invalid. */
export function readRequest(
  route: TestRoute,
  url: URL,
  headers: Headers,
  bytes: Uint8Array,
): Pick<TestCall, 'query' | 'body'> {
  const faults: string[] = [];
  const query: Record<string, unknown> = {};
  for (const { name, required, schema } of route.query as readonly {
    name: string;
    required: boolean;
    schema: Schema;
  }[]) {
    const value = valueOf(url.searchParams, name, schema);
    if (value === undefined) {
      if (required) faults.push(`query.${name} is required`);
      else if (schema['default'] !== undefined) query[name] = schema['default'];
      continue;
    }
    faults.push(...faultsIn(schema, value, `query.${name}`));
    query[name] = value;
  }
  const body = route.upload ? bytes : readBody(headers, new TextDecoder().decode(bytes));
  const wanted = route.body as { required: boolean; schema: Schema } | null;
  if (wanted !== null && (body !== undefined || wanted.required)) faults.push(...faultsIn(wanted.schema, body, 'body'));
  if (faults.length > 0) throw new Refusal('invalid_request', faults.slice(0, 5).join('; '));
  return { query, body };
}

/** Value of a parameter as its schema has it; undefined if absent. */
function valueOf(search: URLSearchParams, name: string, schema: Schema): unknown {
  if (schema['type'] === 'array') return search.has(name) ? search.getAll(name) : undefined;
  if (schema['type'] === 'object') {
    const own = [...search].filter(([key]) => key.startsWith(`${name}[`) && key.endsWith(']'));
    const fields = own.map(([key, value]) => [key.slice(name.length + 1, -1), value] as const);
    return own.length === 0 ? undefined : Object.fromEntries(fields);
  }
  const given = search.get(name);
  if (given === null) return undefined;
  return schema['type'] === 'integer' && /^-?\d+$/.test(given) ? Number(given) : given;
}

function readBody(headers: Headers, text: string): unknown {
  const type = headers.get('content-type');
  // Rejects another content type even with an empty body.
  if ((type !== null || text !== '') && !/^application\/json\b/.test(type ?? ''))
    throw new Refusal('unsupported_media_type');
  if (text === '') return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new Refusal('invalid_json');
  }
}
