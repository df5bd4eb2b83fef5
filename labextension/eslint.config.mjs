import js from '@eslint/js';
import prettier from 'eslint-config-prettier';
import ts from 'typescript-eslint';

export default ts.config(
  { ignores: ['dist', 'lib', 'node_modules', 'src/contract.ts', 'src/lesson.ts'] },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [ts.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: { project: ['tsconfig.json', 'tests/tsconfig.json'] }
    },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      // Lumino's signals take the object beside its method.
      '@typescript-eslint/unbound-method': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/no-explicit-any': 'error',
      curly: ['error', 'all'],
      eqeqeq: 'error',
      'prefer-arrow-callback': 'error'
    }
  },
  prettier,
  { rules: { curly: ['error', 'all'] } },
  {
    files: ['**/*.cjs', '**/*.mjs'],
    languageOptions: {
      globals: {
        URL: 'readonly',
        __dirname: 'readonly',
        console: 'readonly',
        document: 'readonly',
        MutationObserver: 'readonly',
        requestAnimationFrame: 'readonly',
        fetch: 'readonly',
        getComputedStyle: 'readonly',
        module: 'readonly',
        performance: 'readonly',
        process: 'readonly',
        require: 'readonly',
        setTimeout: 'readonly',
        window: 'readonly'
      }
    }
  }
);
