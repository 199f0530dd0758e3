package binwright.assignor;

import java.util.Arrays;

/**
 * Pairs bins with members so that the most partitions keep their owner.
 *
 * <p>The Hungarian method (Kuhn, Naval Research Logistics 2, 1955) with shortest augmenting paths.
 * decide/mapping.py does the same step by step, so that equal groups get equal pairs.
 */
final class BinMatching {
    private static final int FAR = 1 << 30;

    private final int[][] kept;
    private final int columns;
    private final int[] rowOf;
    private final int[] ofRow;
    private final int[] ofColumn;

    private BinMatching(int[][] kept) {
        this.kept = kept;
        this.columns = kept[0].length;
        this.rowOf = new int[columns];
        this.ofRow = new int[kept.length];
        this.ofColumn = new int[columns];
        Arrays.fill(rowOf, -1);
    }

    /** Returns the column of each row, -1 for none, such that the sum of the values is the largest. */
    static int[] bestPairs(int[][] kept) {
        int[] columnOf = new int[kept.length];
        Arrays.fill(columnOf, -1);
        if (kept.length == 0) {
            return columnOf;
        }
        if (kept.length > kept[0].length) {
            int[] rowOf = bestPairs(turned(kept));
            for (int column = 0; column < rowOf.length; column++) {
                columnOf[rowOf[column]] = column;
            }
            return columnOf;
        }
        BinMatching search = new BinMatching(kept);
        for (int row = 0; row < kept.length; row++) {
            search.add(row);
        }
        for (int column = 0; column < search.columns; column++) {
            if (search.rowOf[column] >= 0) {
                columnOf[search.rowOf[column]] = column;
            }
        }
        return columnOf;
    }

    private static int[][] turned(int[][] table) {
        int[][] result = new int[table[0].length][table.length];
        for (int row = 0; row < table.length; row++) {
            for (int column = 0; column < table[0].length; column++) {
                result[column][row] = table[row][column];
            }
        }
        return result;
    }

    /** Pairs one more row along the shortest path to a free column. */
    private void add(int row) {
        int[] distance = new int[columns];
        int[] before = new int[columns];
        int[] visited = new int[columns];
        boolean[] seen = new boolean[columns];
        Arrays.fill(distance, FAR);
        int count = 0;
        int column = -1;
        int current = row;
        while (current >= 0) {
            int nearest = nearest(current, column, seen, distance, before);
            int step = distance[nearest];
            ofRow[row] += step;
            for (int i = 0; i < count; i++) {
                ofRow[rowOf[visited[i]]] += step;
                ofColumn[visited[i]] -= step;
            }
            for (int each = 0; each < columns; each++) {
                if (!seen[each]) {
                    distance[each] -= step;
                }
            }
            column = nearest;
            seen[column] = true;
            visited[count++] = column;
            current = rowOf[column];
        }
        while (column >= 0) {
            int previous = before[column];
            rowOf[column] = previous >= 0 ? rowOf[previous] : row;
            column = previous;
        }
    }

    /** Updates the distances by way of a row and returns the nearest column; a free one first. */
    private int nearest(int row, int column, boolean[] seen, int[] distance, int[] before) {
        int nearest = -1;
        for (int each = 0; each < columns; each++) {
            if (seen[each]) {
                continue;
            }
            int cost = -kept[row][each] - ofRow[row] - ofColumn[each];
            if (cost < distance[each]) {
                distance[each] = cost;
                before[each] = column;
            }
            boolean nearer = nearest < 0 || distance[each] < distance[nearest];
            boolean equal = !nearer && distance[each] == distance[nearest];
            if (nearer || (equal && rowOf[each] < 0 && rowOf[nearest] >= 0)) {
                nearest = each;
            }
        }
        return nearest;
    }
}
