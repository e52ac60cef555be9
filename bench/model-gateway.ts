// Prints the throughput of streamed model responses through the model gateway, relative to the same
// server without it: npm run bench:model-gateway -- [--turns N]
import { parseArgs } from 'node:util';
import { gatewayRatios } from './model-gateway/ratio.ts';

const { turns } = parseArgs({ options: { turns: { type: 'string', default: '5' } } }).values;
console.log(JSON.stringify(await gatewayRatios(Number(turns)), null, 2));
