// Prints docs/mcp.md (`npm run docs:mcp`).
import { mcpReference } from '../../src/mcp/reference.ts';

process.stdout.write(mcpReference());
