import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: [
      { test: { name: 'unit', include: ['test/unit/*.test.ts'], environment: 'node', restoreMocks: true, unstubGlobals: true } },
      { test: { name: 'browser', include: ['test/browser/*.test.ts'], environment: 'node', testTimeout: 20_000, hookTimeout: 120_000, fileParallelism: false } },
    ],
  },
});
