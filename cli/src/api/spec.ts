import { InvalidArgumentError } from 'commander';
import type { CommandSpec } from '../program/command-spec.ts';

export const apiCommand: CommandSpec = {
  name: 'api',
  rawFields: true,
  summary: 'send a request to the API, and print the response',
  details: `The path begins with /v1/ or is /health; {orgId} and {projectId} stand for those of the profile,
in the path and in -F.
The credential goes to the service only: redirects are not followed.

Fields go into the query of GET, HEAD and DELETE, otherwise into a JSON body: a[b]=v is a member of an
object, a[]=v an item of a list. With --paginate, prints each page as a JSON object. JSON is printed
with control characters as codes, other content unchanged. The body of an error is printed as well.

Exit code: 1 for an error of the API, 4 for a rejected credential.`,
  arguments: [
    { name: '<method>', about: 'GET, HEAD, POST, PUT, PATCH or DELETE' },
    { name: '<path>', about: 'path of the API, with or without a query' },
  ],
  options: [
    { flags: '-f, --raw-field <key=value>', about: 'add a string, repeatable', parse: field },
    {
      flags: '-F, --field <key=value>',
      about: 'add a value, repeatable: true, false, null and whole numbers are not strings',
      parse: field,
    },
    { flags: '--input <file>', about: 'file with the body, - for stdin' },
    { flags: '--paginate', about: 'request all pages of a list; send limit=N for the size of a page' },
    { flags: '-H, --header <name:value>', about: 'add a header, repeatable', parse: header },
  ],
  examples: [
    'berth api GET /v1/me',
    "berth api GET /v1/orgs/{orgId}/sandboxes -f status=ready -f limit=100 --paginate | jq -r '.sandboxes[].id'",
    'berth api POST /v1/orgs/{orgId}/sandboxes -f agent=agent_one -F projectId={projectId} -F metadata[seats]=3',
    'berth api PUT /v1/sandboxes/sbx_uodiunxlni4uyqmllemsqh4l/file --input body.json',
  ],
  json: false,
  load: async () => (await import('./api.ts')).callApi,
};

/** Collects pairs in their order. */
function field(typed: string, before: unknown): [string, string][] {
  const equals = typed.indexOf('=');
  const key = typed.slice(0, equals);
  if (equals < 1 || !/^[^[\]]+(?:\[[^[\]]*\])*$/.test(key) || /\[\]./.test(key))
    throw new InvalidArgumentError('It must be key=value, with a key such as name, metadata[team] or scopes[].');
  return [...((before as [string, string][] | undefined) ?? []), [key, typed.slice(equals + 1)]];
}

function header(typed: string, before: unknown): [string, string][] {
  const [, name = '', value = ''] = /^([A-Za-z0-9-]+):[ \t]*([\x20-\x7e]*)$/.exec(typed) ?? [];
  if (name === '') throw new InvalidArgumentError('It must be Name: value, in printable ASCII.');
  if (/^(?:authorization|cookie|host|proxy-.*)$/i.test(name))
    throw new InvalidArgumentError('The credential and the host are those of the profile.');
  return [...((before as [string, string][] | undefined) ?? []), [name, value]];
}
