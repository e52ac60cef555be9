// Generates requests from an operation's part of the document: most valid, some invalid.
import fc, { type Arbitrary } from 'fast-check';
import type { Operation, Parameter } from './document.ts';
import type { Known } from './known.ts';
import { anything, fitting, misfitting } from './values.ts';

/** A request whose ids are not filled in yet. */
export interface PlannedRequest {
  operation: Operation;
  parameters: [Parameter, unknown][];
  body: { value: unknown } | { raw: string; type: string } | null;
  /** A credential of the operation, none, or an unknown one. */
  credential: { pick: number; kind: 'known' | 'missing' | 'unknown' };
}

export interface ReadyRequest {
  method: string;
  target: string;
  headers: Record<string, string>;
  body: string | undefined;
  /** True if the body matches the document. */
  fits: boolean;
}

/** Requests to any of the operations. */
export function requests(operations: readonly Operation[]): Arbitrary<PlannedRequest> {
  return fc.oneof(
    ...operations.map((operation) => ({
      arbitrary: requestsTo(operation),
      weight: operation.answers.has(201) ? 2 : 1,
    })),
  );
}

function requestsTo(operation: Operation): Arbitrary<PlannedRequest> {
  const { parameters, body } = operation;
  const right = fc.tuple(...parameters.map((one) => valueOf(one, fitting(one.schema, one.name))));
  const oneWrong =
    parameters.length === 0
      ? right
      : fc.tuple(right, fc.nat(parameters.length - 1)).chain(([values, place]) => {
          const parameter = parameters[place] as Parameter;
          return misfitting(parameter.schema, parameter.name).map((odd) => values.with(place, [parameter, odd]));
        });
  const rightBody = body === null ? fc.constant(null) : fitting(body.schema).map((value) => ({ value }));
  const wrongBody =
    body === null
      ? fc.oneof(
          fc.constant(null),
          anything.map((value) => ({ value })),
        )
      : fc.oneof(
          { arbitrary: misfitting(body.schema).map((value) => ({ value })), weight: 6 },
          { arbitrary: anything.map((value) => ({ value })), weight: 1 },
          { arbitrary: fc.string({ unit: 'binary' }).map((raw) => ({ raw, type: 'application/json' })), weight: 1 },
          { arbitrary: fc.string().map((raw) => ({ raw, type: 'text/plain' })), weight: 1 },
          { arbitrary: fc.constant(null), weight: 1 },
        );
  const known = fc.nat().map((pick) => ({ pick, kind: 'known' as const }));
  const credential = fc.oneof(
    { arbitrary: known, weight: 30 },
    { arbitrary: fc.constant({ pick: 0, kind: 'missing' as const }), weight: 1 },
    { arbitrary: fc.constant({ pick: 0, kind: 'unknown' as const }), weight: 1 },
  );
  const planned = (
    values: Arbitrary<[Parameter, unknown][]>,
    bodies: Arbitrary<PlannedRequest['body']>,
  ): Arbitrary<PlannedRequest> =>
    fc.record({ operation: fc.constant(operation), parameters: values, body: bodies, credential });
  return fc.oneof(
    { arbitrary: planned(right, rightBody), weight: 6 },
    { arbitrary: planned(oneWrong, rightBody), weight: 2 },
    { arbitrary: planned(right, wrongBody), weight: 3 },
  );
}

function valueOf(parameter: Parameter, values: Arbitrary<unknown>): Arbitrary<[Parameter, unknown]> {
  const given = parameter.required ? values : fc.option(values, { nil: undefined, freq: 1 });
  return given.map((value): [Parameter, unknown] => [parameter, value]);
}

/** The request as sent. @param tokens credentials by their scheme */
export function ready(
  { operation, parameters, body, credential }: PlannedRequest,
  known: Known,
  tokens: Readonly<Record<string, string>>,
): ReadyRequest {
  let path = operation.path;
  const query = new URLSearchParams();
  const headers: Record<string, string> = {};
  for (const [{ name, place }, planned] of parameters) {
    const value = known.fill(planned);
    if (value === undefined) continue;
    const text = textOf(value);
    // An empty or dotted segment would change the path.
    if (place === 'path') path = path.replace(`{${name}}`, /^\.{0,2}$/.test(text) ? 'x' : encodeURIComponent(text));
    else if (place === 'query') query.append(name, text);
    else if (/^[\x20-\x7e]*$/.test(text)) headers[name] = text;
  }
  const token = credential.kind === 'unknown' ? `brt_${'a'.repeat(43)}` : tokenFor(operation, credential, tokens);
  if (token !== undefined) headers['authorization'] = `Bearer ${token}`;
  const content = contentOf(body, known);
  if (content !== null) headers['content-type'] = content.type;
  const fits =
    operation.body === null
      ? content === null
      : content === null
        ? !operation.body.required
        : content.fits(operation.body.isValid);
  return {
    method: operation.method,
    target: query.size === 0 ? path : `${path}?${query.toString()}`,
    headers,
    body: content?.text,
    fits,
  };
}

function tokenFor(
  { credentials }: Operation,
  { pick, kind }: PlannedRequest['credential'],
  tokens: Readonly<Record<string, string>>,
): string | undefined {
  if (kind === 'missing') return undefined;
  const known = credentials.map((name) => tokens[name]).filter((token) => token !== undefined);
  return known[pick % Math.max(1, known.length)] ?? Object.values(tokens)[0];
}

interface Content {
  text: string;
  type: string;
  fits(isValid: (value: unknown) => boolean): boolean;
}

function contentOf(body: PlannedRequest['body'], known: Known): Content | null {
  if (body === null) return null;
  if ('raw' in body) return { text: body.raw, type: body.type, fits: () => false };
  const value = known.fill(body.value);
  return { text: JSON.stringify(value), type: 'application/json', fits: (isValid) => isValid(value) };
}

function textOf(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  // Replaces characters that a URL cannot carry.
  return text.toWellFormed();
}
