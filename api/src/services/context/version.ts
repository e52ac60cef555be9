// Version of the service: that of the checkout.
import { readFileSync } from 'node:fs';

const FILE = new URL('../../../../package.json', import.meta.url);

export const VERSION = (JSON.parse(readFileSync(FILE, 'utf8')) as { version: string }).version;
