import { defineConfig } from 'vitest/config';

export default defineConfig({
  // As another extension sees this package.
  resolve: { alias: { perspex: new URL('src/tokens.ts', import.meta.url).pathname } },
  // The documentation has an example that is tested.
  server: { fs: { allow: ['..'] } },
  // Milliseconds, for a machine that is busy with other things.
  test: { environment: 'happy-dom', include: ['tests/**/*.test.ts'], testTimeout: 60_000 }
});
